"""Signals that whoever started a script has told it to ignore."""
import signal


def is_ignored_from_the_start(number):
    """nohup, or a job that a script has started with &: so do the ranks then. Asked before the script sets a handler of its own."""
    return number in (signal.SIGINT, signal.SIGHUP) and signal.getsignal(number) == signal.SIG_IGN
