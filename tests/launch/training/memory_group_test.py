"""A rank that the kernel ends because its control group has no memory left. Needs the right to make one; without it ctest reports this
test as skipped."""

import os
import pathlib
import re
import subprocess
import sys

from support import (BINARY, SKIPPED, TINY, check, environment, make_data, metrics, mpirun, processes_of_ranks, train, wait_for_step,
                     workspace)

KILLED = 137


class MemoryGroup:
    """A control group with this much memory, where this user may make one; what a process had before it came does not count."""

    def __init__(self, limit_bytes):
        old = pathlib.Path("/sys/fs/cgroup/memory")
        limit, self.deaths = ("memory.limit_in_bytes", "memory.oom_control") if old.is_dir() else ("memory.max", "memory.events")
        self.folder = (old if old.is_dir() else old.parent) / f"sidestream-test-{os.getpid()}"
        self.folder.mkdir()
        try:
            (self.folder / limit).write_text(str(limit_bytes))
        except OSError:
            self.folder.rmdir()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.rmdir()  # whoever was in it is dead

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid))

    def has_killed(self):
        return re.search(r"^oom_kill [1-9]", (self.folder / self.deaths).read_text(), re.MULTILINE) is not None


def check_no_memory_of_the_host(root, flags, group):
    """The kernel ends a rank that needs more than its control group has, for the events of a profile at the latest: steps and saves make do
    with what steps have freed. The run goes on later."""
    run_dir, at = root / "cgroup", flags.index("--steps")
    flags = flags[:at] + flags[at + 2:]
    train(2, run_dir, [*flags, "--steps", "5"])
    slow = ["--resume", "auto", "--steps", "1000", "--checkpoint-every", "40", "--inject", "slow:rank=0,ms=20",
            "--profile", "wait=40,warmup=1,active=20,repeat=10"]
    command = mpirun(2, [BINARY, "train", "--run-dir", run_dir, *flags, *slow])
    with group:
        process = subprocess.Popen(command, env=environment() | {"SIDESTREAM_FAULT_INJECTION": "1"}, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_for_step(process, run_dir, 8)
        pid, = processes_of_ranks(run_dir, 1)
        group.take(pid)
        output, _ = process.communicate(timeout=60)
        check(group.has_killed(), f"the kernel has ended nobody\n{output}")
    check(process.returncode == KILLED, f"expected {KILLED}, found {process.returncode}\n{output}")
    lines = [line for line in output.splitlines() if line.startswith("sidestream [rank")]
    # The launcher may end the other rank before it speaks.
    check(all(re.search(r"rank 1 on .* has died: .*the kernel has killed [1-9]\d* process\(es\) of this host for want of memory", line) for line in lines) and len(lines) <= 1, output)
    further = metrics(run_dir)[-1]["step"] + 2
    train(2, run_dir, [*flags, "--resume", "auto", "--steps", str(further)])
    check(metrics(run_dir)[-1]["step"] == further, "the run does not go on")


def main():
    try:
        group = MemoryGroup(256 << 10)
    except OSError as error:
        print(f"skipped: no control group can be made here ({error})")
        sys.exit(SKIPPED)
    with workspace() as folder:
        root = pathlib.Path(folder)
        flags = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "2", "--steps", "1000", "--lr-schedule", "constant"]
        check_no_memory_of_the_host(root, flags, group)


main()
