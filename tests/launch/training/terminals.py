"""Programs that write to a terminal of a given width, as people see them."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios


def said_to_terminal(command, env, columns, stream="stdout"):
    """(exit code, text) of what a short call writes by `stream` to a terminal so wide. Where that is stderr, stdout is
    dropped. `env`: with TERM, the kind of the terminal."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, stream: secondary}
    with subprocess.Popen([str(word) for word in command], env=env, **streams) as process:
        os.close(secondary)
        text = b""
        with contextlib.suppress(OSError):  # what reading ends with
            while piece := os.read(primary, 1 << 16):
                text += piece
    os.close(primary)
    return process.returncode, text.decode()
