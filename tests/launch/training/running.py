"""Programs that a test starts, of which nothing goes on when the test fails, is stopped, or takes too long."""

import atexit
import contextlib
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "launch/scripts"))
from marked_processes import processes_with  # noqa: E402

# A test that is asked to end does so by an exception, even where whoever started it ignores Ctrl-C; what it starts would ignore it, too.
for asked in (signal.SIGINT, signal.SIGTERM):
    signal.signal(asked, signal.default_int_handler)

NUMBERS = itertools.count()
TAIL_LINES = 40
GOING_S = 5  # how long a killed process may take to go
RUNNING = set()  # the marks of those that have not been left yet


@contextlib.contextmanager
def running(command, env=None, grace_s=5, **how):
    """A program in a process group of its own, its output in one pipe unless `how` (of subprocess.Popen) says otherwise. When the block
    ends before the program, or with a fault, all that was started is ended, and what nobody has read of the output is shown. What a
    program leaves behind that has ended by itself is for the test to look at."""
    mark = f"TEST_STARTED={os.getpid()}.{next(NUMBERS)}"
    name, value = mark.split("=")
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"} | how
    env = (os.environ if env is None else env) | {name: value}
    process, failed = None, True
    RUNNING.add(mark)
    try:
        process = subprocess.Popen([str(word) for word in command], env=env, process_group=0, **how)
        yield process
        failed = False
    finally:
        if process is None:
            kill_marked(mark)
        elif failed or process.poll() is None:
            said = end(process, mark, grace_s)
            if failed and said:
                print(f"the last lines of {process.args}:", *said.splitlines()[-TAIL_LINES:], sep="\n", flush=True)
        close_pipes(process)
        RUNNING.discard(mark)


def completed(command, timeout_s, env=None, **how):
    """As subprocess.run, but that nothing goes on after the time, whatever the command has started."""
    with running(command, env, **how) as process:
        output, errors = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def stop(process):
    """SIGSTOP to it alone. Whether it has stopped; else it had ended."""
    process.send_signal(signal.SIGSTOP)
    return os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED


def end(process, mark, grace_s):
    """Asks first: ranks have groups of their own, and a launcher that is asked takes them along. What nobody has read of its output."""
    said = signal_group(process, signal.SIGTERM, grace_s)
    kill_marked(mark)
    return said + signal_group(process, signal.SIGKILL, GOING_S)


def signal_group(process, number, wait_s):
    was_read = not [pipe for pipe in (process.stdout, process.stderr) if pipe is not None and not pipe.closed]
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        said = "".join(filter(None, process.communicate(timeout=wait_s)))
        return "" if was_read else said
    return ""


def close_pipes(process):
    for pipe in (process.stdout, process.stderr) if process else ():
        if pipe is not None:
            pipe.close()


def kill_marked(mark):
    deadline = time.monotonic() + GOING_S
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


@atexit.register  # unittest leaves out its clean-up when a test is asked to end
def end_all():
    """For a test that is over while its threads still wait for programs."""
    for mark in RUNNING.copy():
        kill_marked(mark)
