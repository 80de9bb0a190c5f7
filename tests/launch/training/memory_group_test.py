"""A rank that the kernel ends because its control group has no memory left. Needs the right to make one; without it ctest reports this
test as skipped."""

import contextlib
import os
import pathlib
import re
import signal
import sys
import time

from support import (BINARY, SKIPPED, TINY, check, faulty_environment, make_data, messages_of, metrics, mpirun, processes_of_ranks, running,
                     train, wait_for_step, workspace)

KILLED = 137


class MemoryGroup:
    """A control group with this much memory, where this user may make one; what a process had before it came does not count."""

    def __init__(self, limit_bytes):
        old = pathlib.Path("/sys/fs/cgroup/memory")
        self.limit_bytes = limit_bytes
        self.limit, self.deaths = ("memory.limit_in_bytes", "memory.oom_control") if old.is_dir() else ("memory.max", "memory.events")
        self.folder = (old if old.is_dir() else old.parent) / f"sidestream-test-{os.getpid()}"

    def __enter__(self):
        self.folder.mkdir()
        try:
            (self.folder / self.limit).write_text(str(self.limit_bytes))
        except OSError:
            self.folder.rmdir()
            raise
        return self

    def __exit__(self, *_):
        """Whoever is still in it is killed; the kernel lets go of the folder a moment after the last one."""
        deadline = time.monotonic() + 10
        while True:
            self.kill()
            try:
                return self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def kill(self):
        for pid in map(int, (self.folder / "cgroup.procs").read_text().split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid))

    def has_killed(self):
        return re.search(r"^oom_kill [1-9]", (self.folder / self.deaths).read_text(), re.MULTILINE) is not None


def check_no_memory_of_the_host(root, flags, group, recovery):
    """The kernel ends a rank that needs more than its control group has, for the events of a profile at the latest: steps and saves make do
    with what steps have freed. With recovery the launcher leaves the other rank alone, which says what is known of the end; else it may
    end it before. The run goes on later."""
    run_dir, at = root / f"cgroup-{len(recovery)}", flags.index("--steps")
    flags = flags[:at] + flags[at + 2:]
    train(2, run_dir, [*flags, "--steps", "5"])
    slow = ["--resume", "auto", "--steps", "1000", "--checkpoint-every", "40", "--inject", "slow:rank=0,ms=20",
            "--profile", "wait=40,warmup=1,active=20,repeat=10"]
    command = mpirun(2, [BINARY, "train", "--run-dir", run_dir, *flags, *slow])
    command[1:1] = recovery
    with running(command, faulty_environment()) as process:
        wait_for_step(process, run_dir, 8)
        pid, = processes_of_ranks(run_dir, 1)
        group.take(pid)
        output, _ = process.communicate(timeout=60)
        check(group.has_killed(), f"the kernel has ended nobody\n{output}")
    messages = messages_of(output)
    check(len(messages) == 1 if recovery else process.returncode == KILLED and len(messages) <= 1, f"{process.returncode}\n{output}")
    told = r"rank 1 on .* has died: .*the kernel has killed [1-9]\d* process\(es\) of this host for want of memory"
    check(all(re.search(told, message) for message in messages), output)
    further = metrics(run_dir)[-1]["step"] + 2
    train(2, run_dir, [*flags, "--resume", "auto", "--steps", str(further)])
    check(metrics(run_dir)[-1]["step"] == further, "the run does not go on")


@contextlib.contextmanager
def new_group(limit_bytes):
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(MemoryGroup(limit_bytes))
        except OSError as error:
            print(f"skipped: no control group can be made here ({error})")
            sys.exit(SKIPPED)
        yield group


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        flags = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "2", "--steps", "1000", "--lr-schedule", "constant"]
        for recovery in ([], ["--enable-recovery"]):
            with new_group(256 << 10) as group:
                check_no_memory_of_the_host(root, flags, group, recovery)


main()
