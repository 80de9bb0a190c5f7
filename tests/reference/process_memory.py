"""Memory of running processes, read from outside."""
import contextlib
import pathlib


def descendants(pid):
    """The process and all below it."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        with contextlib.suppress(OSError):  # it has ended, or one of its threads
            for children in pathlib.Path(f"/proc/{found[-1]}/task").glob("*/children"):
                todo += map(int, children.read_text().split())
    return found


def proportional_bytes(pid):
    """Proportional set size: a page that processes share counts once among them. 0 for a process that has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
    except OSError:
        return 0
