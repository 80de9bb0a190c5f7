"""launch/supervise around real trainings: restarts from checkpoints, and an account of the time over all starts."""

import fcntl
import json
import os
import pathlib
import re
import signal
import time

from support import (BINARY, ROOT, TINY, check, checkpoint, faulty_environment, losses, make_data, metrics, processes_of_ranks, run,
                     running, train, wait_for_step, wait_until, workspace)

COLLECTIVE = 6


class Job:
    """Two ranks under a supervisor, whose messages a test can wait for."""

    def __init__(self, run_dir, words, slurm=None):
        self.name, self.output = run_dir.name, run_dir.with_suffix(".txt")
        self.env = faulty_environment() | (slurm or {})
        self.command = [ROOT / "launch/supervise", "-np", "2", "--backoff", "0.2", "--mpi-arg", "--oversubscribe", *words]

    def __enter__(self):
        with open(self.output, "a") as output:
            self.started = running(self.command, self.env, stdout=output)
            self.process = self.started.__enter__()
        return self

    def __exit__(self, *fault):
        self.started.__exit__(*fault)

    def said(self):
        return self.output.read_text(errors="replace")

    def wait_for(self, words):
        end = time.monotonic() + 60
        while words not in self.said():
            check(self.process.poll() is None and time.monotonic() < end, f"{self.name}: never said '{words}'\n{self.said()}")
            time.sleep(0.02)

    def end(self, expect):
        code = self.process.wait(timeout=300)
        check(code == expect, f"{self.name}: expected {expect}, found {code}\n{self.said()}")
        return self.said()


class Supervised(Job):
    """A training."""

    def __init__(self, run_dir, flags, inject, words=(), slurm=None):
        super().__init__(run_dir, ["--build", BINARY.parent, *words, "--", "train", "--run-dir", run_dir, *flags, "--inject", inject], slurm)


def said_to_the_end(job, expect):
    with job:
        return job.end(expect)


def keep_lock_of_the_dead(job, run_dir):
    """As a network file system does for a host that is gone: nobody else gets it until the next start has met it."""
    with open(run_dir / "lock") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                check(job.process.poll() is None, f"ended while its lock was held\n{job.said()}")
                time.sleep(0.01)
        job.wait_for("is still in use by process")


def slurm(root):
    """An allocation, with a scontrol that writes down what it is asked."""
    folder = root / "slurm"
    folder.mkdir()
    (folder / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n')
    (folder / "scontrol").chmod(0o755)
    return folder / "asked", {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "42"}


def check_restarts(root, flags):
    """Killed, then asked to stop by Slurm before its time is over; the job's next start fails once more, and comes to the end."""
    asked, allocation = slurm(root)
    with Supervised(root / "run", flags, "kill:rank=1,step=17; slow:step=22,ms=300,attempt=2", ["--requeue"], allocation) as job:
        wait_for_step(job.process, root / "run", 1)
        keep_lock_of_the_dead(job, root / "run")
        wait_for_step(job.process, root / "run", 21)  # of start 2: start 1 was killed before
        job.process.send_signal(signal.SIGUSR1)
        said = job.end(75)
    check("start 2 in 0.2 s, from step 10" in said and "job 42 is in the queue again" in said, said)
    check(asked.read_text() == "requeue 42\n", asked.read_text())
    step = metrics(root / "run")[-1]["step"]
    check(21 <= step < 30 and (checkpoint(root / "run", step) / "manifest.json").exists(), f"asked to stop at step 21, at {step}\n{said}")

    again = allocation | {"SLURM_RESTART_COUNT": "1"}
    said = said_to_the_end(Supervised(root / "run", flags, "exit:rank=0,step=35,code=1", ["--requeue"], again), 0)
    check(f"step_{step:08d}, step {step}" in said and "start 2 in 0.2 s, from step 30" in said, said)
    check(asked.read_text() == "requeue 42\n", asked.read_text())
    check(losses(root / "run") == losses(root / "whole"), "other losses than without failures")
    check_account(root, said)


def check_account(root, said):
    ledger = [json.loads(line) for line in (root / "run/ettr.jsonl").read_text().splitlines()]
    check([line["code"] for line in ledger if line["event"] == "ended"] == [137, 75, 1, 0], ledger)
    numbered = [(line["event"], line["attempt"]) for line in ledger if line["event"] in ("started", "ended")]
    check(numbered == [(event, start) for start in (1, 2, 1, 2) for event in ("started", "ended")], ledger)
    check(len({line["supervisor"] for line in ledger}) == 2, ledger)
    record = json.loads((root / "run/run.json").read_text())
    account = record["ettr_account"]
    check((account["starts"], account["failures"]) == (4, 2), account)
    parts = sum(account[key] for key in account if key.endswith("_s") and key != "wall_s")
    check(abs(parts - account["wall_s"]) < 1e-6, f"parts {parts} of {account}")
    check(all(account[key] >= -1e-3 for key in account), account)
    check(0 < record["ettr"] < 1 and account["replayed_s"] > 0 and account["idle_s"] >= 0.4, account)
    check("effective training time" in said, said)


def ends_in_vain(root, flags):
    """A start of a run that hangs or stops ends in its deadline, wherever that is, and says where; the supervisor gives up in the end."""
    faults = ["hang:rank=1,step=5,at=update", "stop:rank=1,step=4,at=evaluation", "hang:rank=0,step=10,at=commit",
              "stop:rank=1,step=10,at=checkpoint"]
    at = flags.index("--eval-every") + 1
    short = [*flags[:at], "4", *flags[at + 1:], "--timeout-step", "2", "--timeout-eval", "2.1", "--timeout-checkpoint", "2.2"]
    inject = "; ".join(f"{fault},attempt={number}" for number, fault in enumerate(faults, 1))
    said = said_to_the_end(Supervised(root / "vain", short, inject), COLLECTIVE)
    for words in (r"step 5, optimizer: not finished after 2000 ms|missing: rank 1 on .* in optimizer of step 5",
                  r"not finished after 2100 ms; missing: rank 1 on .*--timeout-eval gives slow ranks more time",
                  r"(the save of step 10|step 10, checkpoint).*: not finished after 2200 ms|2200 ms; missing: rank 0 on .* in checkpoint of step 10",
                  r"not finished after 2200 ms; missing: rank 1 on .*--timeout-checkpoint gives slow ranks more time"):
        check(re.search(words, said), f"expected '{words}' in:\n{said}")
    ends = [json.loads(line) for line in (root / "vain/ettr.jsonl").read_text().splitlines()]
    check([line["code"] for line in ends if line["event"] == "ended"] == [COLLECTIVE] * len(faults), ends)
    check("giving up after 3 restarts without a new checkpoint (newest: none)" in said, said)
    check(re.search(r"supervise: effective training time \d.* % of .*; 4 starts, 4 failures", said), said)


def check_program_of_ones_own(root):
    """Killed once it has saved, it goes on from there, and ends as one that nobody disturbed."""
    program, steps = BINARY.parent / "examples/train_mlp", "2000"
    whole = run(2, [program, steps, root / "mlp-whole"])
    with Job(root / "mlp", ["--program", program, "--run-dir", root / "mlp", "--", steps, root / "mlp"]) as job:
        wait_until(job.process, (root / "mlp/checkpoints/step_00000100").exists, "the first checkpoint")
        os.kill(processes_of_ranks(root / "mlp", 1, program)[0], signal.SIGKILL)
        keep_lock_of_the_dead(job, root / "mlp")
        said = job.end(0)
    check(re.search(r"ended with 137; start 2 in 0.2 s, from step \d+00\n", said), said)
    check(whole.splitlines()[-2:] == said.splitlines()[-2:], f"expected\n{whole}\nfound\n{said}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", "4", "--steps", "40", "--checkpoint-every", "10"]
        flags += ["--async-checkpoints", "off"]  # the step before a failure's is saved for certain
        train(2, root / "whole", flags)
        check_restarts(root, flags)

        ends_in_vain(root, flags)
        check_program_of_ones_own(root)
        said = said_to_the_end(Supervised(root / "nan", flags, "nan:rank=1,step=5,attempt=all"), 5)
        check("a restart would end the same way" in said, said)


main()
