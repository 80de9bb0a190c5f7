"""Programs that write to a terminal of a given width, as people see them."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

END = b"\0"  # no program writes it to a terminal


def said_to_terminal(command, env, columns, stream="stdout"):
    """(exit code, text) of what a short call writes by `stream` to a terminal so wide. Where that is stderr, stdout is
    dropped. `env`: with TERM, the kind of the terminal.

    The terminal stays open on its program's side until all is read, and a mark is written after the program's end: once
    that side is closed, a read may fail although the last lines were not read (`n_tty_read` of Linux looks for input
    first, then for the other side), which a busy machine shows."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, stream: secondary}
    with subprocess.Popen([str(word) for word in command], env=env, **streams) as process:

        def mark_the_end():
            process.wait()
            os.write(secondary, END)

        ending = threading.Thread(target=mark_the_end)
        ending.start()
        text = b""
        while not text.endswith(END):
            text += os.read(primary, 1 << 16)
        ending.join()
    os.close(primary)
    os.close(secondary)
    return process.returncode, text.removesuffix(END).decode()
