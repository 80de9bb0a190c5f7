"""A process that a script starts ends when the script is killed, too."""
import ctypes
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before a fork
SET_SIGNAL_OF_PARENTS_DEATH = 1


def end_with_parent():
    """For preexec_fn of subprocess.Popen, called by whoever starts the process: SIGTERM when that one has died, however early."""
    parent = os.getpid()

    def ask():
        LIBC.prctl(SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)

    return ask
