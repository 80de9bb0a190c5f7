"""Runs a command and prints its exit code, wall seconds, processor seconds, the peak memory in MB of its largest process, and
that of all its processes together: proportional set sizes, which count a shared page once, looked at 20 times a second.

    python tests/bench/trace/measured.py COMMAND ...
"""
import pathlib
import resource
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "reference"))
from process_memory import descendants, proportional_bytes  # noqa: E402

BETWEEN_LOOKS_S = 0.05


def watch(process, ended, peaks):
    while not ended.wait(BETWEEN_LOOKS_S):
        peaks.append(sum(map(proportional_bytes, descendants(process))))


def main():
    ended, peaks, begun = threading.Event(), [0], time.perf_counter()
    child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watcher = threading.Thread(target=watch, args=(child.pid, ended, peaks))
    watcher.start()
    child.wait()
    wall, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    ended.set()
    watcher.join()
    print(child.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, max(peaks) / 2**20)


if __name__ == "__main__":
    main()
