"""One of two ranks fails while it trains: one message, the documented code, nothing hangs and nothing stays in shared
memory; the last checkpoint loads and the run goes on from it.

The faults are those of the world outside: a shard that somebody overwrites or cuts short, signals, a full disk's stand-in.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

from support import (BINARY, TINY, check, completed, environment, expect, make_data, messages_of, metrics, mpirun, only_message,
                     processes_of_ranks, running, train, wait_for_step, wait_until, with_own_shared_memory, workspace)

CONFIG, DATA, CHECKPOINT, COLLECTIVE, KILLED = 2, 3, 4, 6, 128 + signal.SIGKILL
HEADER_BYTES, SAMPLE_TOKENS = 1024, 32
BATCH, RANKS = 2, 2
STEPS_PER_CHECKPOINT = 10


class Run:
    """Two ranks that train for long, with a /dev/shm of their own where this user may make one."""

    def __init__(self, run_dir, flags, prefix=()):
        self.run_dir = run_dir
        self.shared_memory = run_dir.parent / (run_dir.name + ".shm")
        command = [*prefix, *mpirun(RANKS, [BINARY, "train", "--run-dir", run_dir, "--steps", "100000", *flags])]
        command = with_own_shared_memory(command, self.shared_memory)
        self.started = running(command, environment())

    def __enter__(self):
        self.process = self.started.__enter__()
        return self

    def __exit__(self, *fault):
        self.started.__exit__(*fault)

    def pids(self, rank):
        """The processes of this rank of this run."""
        return processes_of_ranks(self.run_dir, rank)

    def send(self, rank, number):
        pids = self.pids(rank)
        check(len(pids) == 1, f"rank {rank} has the processes {pids}")
        os.kill(pids[0], number)

    def end(self, code, limit_s):
        """Waits for the end; returns the program's own lines."""
        begin = time.monotonic()
        output, _ = self.process.communicate(timeout=60)
        check(time.monotonic() - begin < limit_s, f"{self.run_dir.name}: took {time.monotonic() - begin:.1f} s to end\n{output}")
        check(self.process.returncode == code,
              f"{self.run_dir.name}: expected exit code {code}, found {self.process.returncode}\n{output}")
        for rank in range(RANKS):
            check(not self.pids(rank), f"{self.run_dir.name}: rank {rank} still runs")
        if self.shared_memory.exists():
            left = self.shared_memory.read_text().split()
            check(not left, f"{self.run_dir.name}: left in /dev/shm: {left}")
        return messages_of(output)


def check_resumes(run_dir, flags, intervals=2):
    """The newest checkpoint is less than these intervals older than what was logged, and three more steps can be taken."""
    logged = [line["step"] for line in metrics(run_dir)][-1]
    output = train(RANKS, run_dir, flags + ["--resume", "auto", "--steps", str(logged + 3)])
    check("resumed from" in output, f"{run_dir.name}: trains afresh\n{output}")
    check([line["step"] for line in metrics(run_dir)] == list(range(1, logged + 4)), f"{run_dir.name}: steps are missing")
    saved = int(output.split("step_")[1][:8])
    check(saved > logged - intervals * STEPS_PER_CHECKPOINT, f"{run_dir.name}: resumed from step {saved} after {logged} steps")


def place_of_sample(sample):
    """Where its tokens are in a shard of llm.c; samples come in order."""
    return HEADER_BYTES + 2 * sample * SAMPLE_TOKENS


def first_sample(step, rank):
    return ((step - 1) * RANKS + rank) * BATCH


def check_overwritten_shard(root, flags):
    """A sample of one rank gets ids that no vocabulary has: that rank alone throws, in its forward."""
    data = shutil.copytree(root / "data", root / "overwritten")
    shard = data / "train_000000.bin"
    slow = ["--inject", "slow:rank=0,step=1,steps=79,ms=50"]  # the sample is overwritten before anybody reads it
    with Run(root / "rank-throws", ["--data", str(data), "--shuffle", "off", *slow, *flags]) as run:
        wait_for_step(run.process, run.run_dir, 1)
        with open(shard, "r+b") as file:
            file.seek(place_of_sample(first_sample(step=80, rank=1)) + 20)
            file.write(struct.pack("<8H", *[9999] * 8))
        lines = run.end(DATA, limit_s=60)
    check(len(lines) == 1, f"expected one message, found {lines}")
    check("[rank 1]" in lines[0] and "9999" in lines[0], lines[0])
    flights = [json.loads((run.run_dir / f"flight/from_step_00000000/rank_{rank:05}.json").read_text()) for rank in range(RANKS)]
    check("9999" in flights[1]["why"] and all(flight["collectives"] for flight in flights), f"{flights}")
    check(metrics(run.run_dir)[-1]["step"] == 79, f"stopped after {metrics(run.run_dir)[-1]}")
    check_resumes(run.run_dir, ["--data", str(root / "data"), *flags])


def check_cut_shard(root, flags):
    """All ranks may meet the end of the file at the same time; each says so at most once.

    The place named is where the file ends now, or, of a rank that was copying a sample just then, where it was in it.
    """
    data = shutil.copytree(root / "data", root / "cut")
    with Run(root / "shard-cut", ["--data", str(data), *flags]) as run:
        wait_for_step(run.process, run.run_dir, 25)
        os.truncate(data / "train_000000.bin", 4096)
        lines = run.end(DATA, limit_s=30)
    check(1 <= len(lines) <= RANKS and len(set(lines)) == len(lines), f"expected a message, found {lines}")
    for line in lines:
        check("train_000000.bin, byte 4096:" in line or re.search(r"train_000000\.bin, byte \d+: .*cut short while it is in use", line), line)
    check_resumes(run.run_dir, ["--data", str(root / "data"), *flags])


def check_killed_rank(root, flags):
    """A shard that is removed meanwhile takes nothing from the run, which has it open; the next start wants it."""
    data = shutil.copytree(root / "data", root / "removed")
    with Run(root / "rank-killed", ["--data", str(data), *flags]) as run:
        wait_for_step(run.process, run.run_dir, 25)
        (data / "train_000000.bin").unlink()
        wait_for_step(run.process, run.run_dir, metrics(run.run_dir)[-1]["step"] + 10)
        run.send(1, signal.SIGKILL)
        lines = run.end(KILLED, limit_s=30)
    # The other rank may see it die before mpirun ends that one too.
    check(len(lines) <= 1 and all("rank 1 on" in line and "has died" in line for line in lines), f"after a killed rank: {lines}")
    expect(DATA, ["has no shard of this split", "`train` in the name"], RANKS, ["--run-dir", str(run.run_dir), "--data", str(data), *flags, "--resume", "auto"])
    check_resumes(run.run_dir, ["--data", str(root / "data"), *flags])


def check_no_descriptors(root, flags):
    """From one moment on a rank can open nothing: the next save fails on all ranks alike, the ones before stay."""
    with Run(root / "no-descriptors", ["--data", str(root / "data"), *flags]) as run:
        wait_for_step(run.process, run.run_dir, 25)
        pid, = run.pids(1)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))  # those that are open stay open
        lines = run.end(CHECKPOINT, limit_s=30)
    check(len(lines) == 1 and "rank 1" in lines[0] and "Too many open files" in lines[0] and "ulimit -n" in lines[0], f"expected one message, found {lines}")
    check_resumes(run.run_dir, ["--data", str(root / "data"), *flags], intervals=3)  # steps went on beside the save


def check_forbidden_folder(root, flags):
    """Somebody takes the right to write from the folder of a save that one rank has still to write to: code and message of a save."""
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []  # root may write anywhere
    check(subprocess.run([*prefix, "true"], capture_output=True).returncode == 0, "root cannot give up its rights here (CAP_SETPCAP)")
    slow = ["--inject", f"slow:rank=1,step={2 * STEPS_PER_CHECKPOINT},steps=1,at=checkpoint,ms=3000"]
    with Run(root / "forbidden", ["--data", str(root / "data"), *slow, *flags], prefix) as run:
        folder = run.run_dir / f"checkpoints/step_{2 * STEPS_PER_CHECKPOINT:08d}.pending"
        wait_for_step(run.process, run.run_dir, 2 * STEPS_PER_CHECKPOINT)
        wait_until(run.process, (folder / "optimizer_00000_of_00002.safetensors").exists, "the last file of rank 0")
        folder.chmod(0o500)
        lines = run.end(CHECKPOINT, limit_s=30)
    check(len(lines) == 1 and "rank 1" in lines[0] and f"{folder}/optimizer_00001_of_00002" in lines[0] and "Permission denied" in lines[0], f"{lines}")
    folder.chmod(0o700)
    check_resumes(run.run_dir, ["--data", str(root / "data"), *flags], intervals=3)  # steps went on beside the save
    check(not folder.exists(), "half of a save is left")


def check_stopped_rank(root, flags):
    """Wherever it is when it stops: in a step or in a save, which has a deadline of its own."""
    deadlines = ["--timeout-step", "6", "--timeout-checkpoint", "6"]
    with Run(root / "rank-stopped", ["--data", str(root / "data"), *deadlines, *flags]) as run:
        wait_for_step(run.process, run.run_dir, 25)
        run.send(1, signal.SIGSTOP)
        lines = run.end(COLLECTIVE, limit_s=30)
    check(len(lines) == 1, f"expected one message, found {lines}")
    for word in ("[rank 0]", "not finished after 6000 ms", "missing: rank 1 on "):
        check(word in lines[0], f"expected '{word}' in: {lines[0]}")
    check_resumes(run.run_dir, ["--data", str(root / "data"), *flags])


def check_late_rank(root, flags):
    """A rank that never gets as far as MPI: the others must not wait for ever."""
    late = root / "late.sh"
    late.write_text('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && sleep 60\nexec "$@"\n')
    late.chmod(0o755)
    command = [late, BINARY, "train", "--run-dir", root / "never", "--data", root / "data", "--timeout-setup", "2", *flags]
    done = completed(mpirun(RANKS, command), 30, environment())
    check(done.returncode == COLLECTIVE, f"code {done.returncode}\n{done.stdout}")
    check("starting MPI: not finished after 2000 ms; missing: rank 1 on " in only_message(done.stdout), done.stdout)
    check(not (root / "never").exists(), "a refused call left a run directory behind")


def check_record_that_cannot_be_written(root, flags):
    """The failure is told, and not what goes wrong while it is being recorded."""
    data = shutil.copytree(root / "data", root / "unrecorded")
    with Run(root / "no-record", ["--data", str(data), *flags]) as run:
        wait_for_step(run.process, run.run_dir, 5)
        record = run.run_dir / "run.json"
        record.unlink()
        (record / "in-the-way").mkdir(parents=True)
        os.truncate(data / "train_000000.bin", 4096)
        lines = run.end(DATA, limit_s=30)
    check(any("byte 4096" in line for line in lines), f"the cause is not told: {lines}")

    with Run(root / "no-record-at-all", ["--data", str(root / "data"), *flags]) as run:
        wait_for_step(run.process, run.run_dir, 5)
        record = run.run_dir / "run.json"
        record.unlink()
        (record / "in-the-way").mkdir(parents=True)
        run.send(0, signal.SIGTERM)
        lines = run.end(CONFIG, limit_s=30)
    check(len(lines) == 1 and "run.json" in lines[0], f"expected one message, found {lines}")


def main():
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    with workspace() as folder:
        root = pathlib.Path(folder)
        make_data(root / "data")
        flags = TINY + ["--batch-size-per-rank", str(BATCH), "--lr-schedule", "constant",
                        "--checkpoint-every", str(STEPS_PER_CHECKPOINT)]
        check_overwritten_shard(root, flags)
        check_cut_shard(root, flags)
        check_killed_rank(root, flags)
        check_no_descriptors(root, flags)
        check_forbidden_folder(root, flags)
        check_stopped_rank(root, flags)
        check_late_rank(root, flags)
        check_record_that_cannot_be_written(root, flags)


main()
