"""Ten minutes of training under launch/supervise while ranks are killed at random: the run's own account of its effective training
time against what is seen from outside (steps that are kept, times of the kills, of the end, of the first step after each), against the
formula with costs seen from outside, and what those would give with one failure an hour. Writes tests/soak/ettr.md.

  build/env/bin/python tests/soak/ettr.py [--minutes 10] [--mtbf 60] [--seed N]
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
from support import BINARY, SMALL, environment, make_data, processes_of_ranks  # noqa: E402

RANKS = 2


class Outages:
    """Seconds from each kill to the first forward of the start after it, as the log of steps shows them."""

    def __init__(self, run_dir):
        self.file, self.killed_at, self.seconds = run_dir / "metrics.jsonl", None, []

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        self.killed_at = time.time()

    def look(self):
        """Over once the start after it has logged a line. It cuts the file at the checkpoint that it goes on from, and its first line
        comes some steps later, by the pace that the line tells."""
        if self.killed_at is None or not self.file.exists() or self.file.stat().st_mtime <= self.killed_at + 0.5:
            return
        line, logged_at = last_line(self.file), self.file.stat().st_mtime
        steps = line.get("step", 0) - newest_step(self.file.parent / "checkpoints")
        if steps > 0:
            self.seconds.append(logged_at - self.killed_at - steps * line["batch_cost_s"])
            self.killed_at = None


def last_line(file):
    lines = [line for line in file.read_text().splitlines() if line.endswith("}")] if file.exists() else []
    return json.loads(lines[-1]) if lines else {}


def newest_step(checkpoints):
    return max((int(folder.name[5:]) for folder in checkpoints.glob("step_[0-9]*") if folder.name[5:].isdigit()), default=0)


def kill_at_random(supervisor, run_dir, dice, mtbf_s, end):
    """A rank at a time, after times as those of failures that know nothing of each other. Returns how long each outage was."""
    outages = Outages(run_dir)
    while supervisor.poll() is None:
        next_kill = time.monotonic() + dice.expovariate(1 / mtbf_s)
        while time.monotonic() < min(next_kill, end) or outages.killed_at is not None:
            if supervisor.poll() is not None:
                return outages.seconds
            outages.look()
            time.sleep(0.05)
        if time.monotonic() >= end:
            break
        victims = processes_of_ranks(run_dir)
        if victims:
            outages.kill(dice.choice(victims))
    return outages.seconds


def wait_for_training(supervisor, run_dir):
    """A run that has just lost a rank is not one to ask: until the start after it has taken a step."""
    begun, end = time.time(), time.monotonic() + 60
    while supervisor.poll() is None and time.monotonic() < end and (run_dir / "metrics.jsonl").stat().st_mtime <= begun + 1:
        time.sleep(0.2)


def expected(interval_s, stall_s, outage_s, mtbf_s):
    """The share of wall time that is effective training: stalls between failures, and for each failure half an interval that is
    trained again and the time until training goes on."""
    return max(0, (1 - stall_s / (interval_s + stall_s)) * (1 - (interval_s / 2 + outage_s) / mtbf_s))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--mtbf", type=float, default=60, help="seconds between failures, on average")
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    wanted = parser.parse_args()
    dice = random.Random(wanted.seed)
    with tempfile.TemporaryDirectory(prefix="sidestream-ettr-") as scratch:
        root = pathlib.Path(scratch)
        data, run_dir = make_data(root / "data"), root / "run"
        plain = SMALL[:SMALL.index("--log-every")] + SMALL[SMALL.index("--log-every") + 2:]
        flags = plain + ["--data", str(data), "--batch-size-per-rank", "32", "--steps", "100000000",
                                           "--lr-schedule", "constant", "--lr", "1e-4", "--log-every", "10"]
        command = [str(ROOT / "launch/supervise"), "-np", str(RANKS), "--build", str(BINARY.parent), "--restarts", "20", "--",
                   "train", "--run-dir", str(run_dir), "--checkpoint-every", str(wanted.every), *flags]
        began = time.time()
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = collections.deque(maxlen=20)
        threading.Thread(target=lambda: said.extend(process.stderr), daemon=True).start()
        outages = kill_at_random(process, run_dir, dice, wanted.mtbf, time.monotonic() + 60 * wanted.minutes)
        wait_for_training(process, run_dir)
        process.send_signal(signal.SIGUSR1)
        code = process.wait(timeout=120)
        if code != 75:
            sys.exit(f"the supervisor ended with {code} and not as asked:\n{''.join(said)}")
        record = json.loads((run_dir / "run.json").read_text())
        seen = {"outages": outages, "wall_s": time.time() - began, "steps": newest_step(run_dir / "checkpoints"),
                "step_s": statistics.median(json.loads(line)["batch_cost_s"] for line in (run_dir / "metrics.jsonl").read_text().splitlines())}
    report(wanted, code, record, seen)


def faults_of(wanted, account):
    """What no account of such a run may say: that it was over early, or that something took less than no time."""
    faults = [f"{name} is {value:.2f}" for name, value in account.items() if name.endswith("_s") and value < -0.05]
    if account["wall_s"] < 60 * wanted.minutes:
        faults.append(f"wall_s is {account['wall_s']:.0f}, less than {wanted.minutes:g} minutes")
    return faults


def report(wanted, code, record, seen):
    account, failures = record["ettr_account"], max(1, len(seen["outages"]))
    saves = max(1, seen["steps"] // wanted.every)
    outside = seen["steps"] * seen["step_s"] / seen["wall_s"]
    # What a save costs a step is within the noise of steps from outside: this one cost is the run's own.
    costs = {"interval_s": wanted.every * seen["step_s"], "stall_s": account["checkpoint_stall_s"] / saves,
             "outage_s": sum(seen["outages"]) / failures}
    formula = expected(**costs, mtbf_s=seen["wall_s"] / failures)
    hourly = expected(**costs, mtbf_s=3600)
    lines = [f"{datetime.date.today()}: {seen['wall_s']:.0f} s of training on {RANKS} CPU ranks, {len(seen['outages'])} ranks killed (SIGKILL, random rank and "
             f"moment, seed {wanted.seed}), ended with {code} as asked.", "",
             f"- effective training time: by the run's own account {100 * record['ettr']:.1f} %, seen from outside {100 * outside:.1f} % "
             f"({seen['steps']} steps kept, {seen['step_s']:.4f} s each in the median), by the formula {100 * formula:.1f} %",
             f"- by the costs seen, with one failure an hour: {100 * hourly:.1f} %",
             "- where the time went by the account, in seconds: "
             + ", ".join(f"{name[:-2]} {value:.1f}" for name, value in account.items() if name.endswith("_s")),
             "- costs of the formula, in seconds: " + ", ".join(f"{name[:-2]} {value:.3f}" for name, value in costs.items())
             + " (outage: from a kill to the first step after it, by the clock of this test)"]
    print("\n".join(lines))
    (ROOT / "tests/soak/ettr.md").write_text("# Effective training time under failures\n\n" + "\n".join(lines) + "\n\nMade by `tests/soak/ettr.py`.\n")
    faults = faults_of(wanted, account)
    if max(abs(record["ettr"] - formula), abs(record["ettr"] - outside)) > 0.02 or hourly < 0.97:
        faults.append("the effective training time is not what it should be")
    sys.exit("\n".join(faults) if faults else 0)


if __name__ == "__main__":
    main()
