"""launch/supervise around real trainings: restarts from checkpoints, and an account of the time over all starts."""

import fcntl
import json
import pathlib
import re
import subprocess
import time

from support import BINARY, ROOT, TINY, check, environment, losses, make_data, train, wait_for_step, workspace


class Supervised:
    """A training of two ranks under a supervisor, whose messages a test can wait for."""

    def __init__(self, run_dir, flags, inject):
        env = environment() | {"SIDESTREAM_FAULT_INJECTION": "1"}
        command = [str(ROOT / "launch/supervise"), "-np", "2", "--build", str(BINARY.parent), "--backoff", "0.2", "--mpi-arg", "--oversubscribe",
                   "--", "train", "--run-dir", str(run_dir), *flags, "--inject", inject]
        self.name, self.output = run_dir.name, run_dir.with_suffix(".txt")
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT)

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


def keep_lock_of_the_dead(job, run_dir):
    """As a network file system does for a host that is gone: nobody else gets it until the next start has met it."""
    wait_for_step(job.process, run_dir, 1)
    with open(run_dir / "lock") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                check(job.process.poll() is None, f"ended while its lock was held\n{job.said()}")
                time.sleep(0.01)
        job.wait_for("is still in use by process")


def check_restarts(root, flags):
    job = Supervised(root / "run", flags, "kill:rank=1,step=17; exit:rank=0,step=25,code=1,attempt=2")
    keep_lock_of_the_dead(job, root / "run")
    said = job.end(0)
    check(losses(root / "run") == losses(root / "whole"), "other losses than without failures")
    check("start 2 in 0.2 s, from step 10" in said and "start 3 in 0.2 s, from step 20" in said, said)
    ledger = [json.loads(line) for line in (root / "run/ettr.jsonl").read_text().splitlines()]
    check([line["code"] for line in ledger if line["event"] == "ended"] == [137, 1, 0], ledger)
    numbered = [(line["event"], line["attempt"]) for line in ledger if line["event"] in ("started", "ended")]
    check(len({line["supervisor"] for line in ledger}) == 1 and numbered == [(event, start) for start in (1, 2, 3) for event in ("started", "ended")], ledger)
    record = json.loads((root / "run/run.json").read_text())
    account = record["ettr_account"]
    check((account["starts"], account["failures"]) == (3, 2), account)
    parts = sum(account[key] for key in account if key.endswith("_s") and key != "wall_s")
    check(abs(parts - account["wall_s"]) < 1e-6, f"parts {parts} of {account}")
    check(all(account[key] >= -1e-3 for key in account), account)
    check(0 < record["ettr"] < 1 and account["replayed_s"] > 0 and account["idle_s"] >= 0.4, account)
    check("effective training time" in said, said)


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", "4", "--steps", "40", "--checkpoint-every", "10"]
        flags += ["--async-checkpoints", "off"]  # the step before a failure's is saved for certain
        train(2, root / "whole", flags)
        check_restarts(root, flags)

        said = Supervised(root / "vain", flags, "kill:rank=1,step=5,attempt=all").end(137)
        check("giving up after 3 restarts without a new checkpoint (newest: none)" in said, said)
        check(re.search(r"supervise: effective training time \d\.\d % of .*; 4 starts, 4 failures", said), said)
        said = Supervised(root / "nan", flags, "nan:rank=1,step=5,attempt=all").end(5)
        check("a restart would end the same way" in said, said)


main()
