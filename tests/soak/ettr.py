"""Ten minutes of training under launch/supervise while ranks are killed at random: the measured effective training time against
the formula, and what the measured costs would give with one failure an hour. Writes tests/soak/ettr.md.

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
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
from support import BINARY, TINY, environment, make_data, processes_of_ranks  # noqa: E402

RANKS = 2


def kill_at_random(supervisor, run_dir, dice, mtbf_s, end):
    kills = 0
    while True:
        pause = dice.expovariate(1 / mtbf_s)
        if supervisor.poll() is not None:
            return kills
        time.sleep(max(0.0, min(pause, end - time.monotonic())))
        if time.monotonic() >= end:
            return kills
        victims = processes_of_ranks(run_dir)
        if victims:
            os.kill(dice.choice(victims), signal.SIGKILL)
            kills += 1


def wait_for_training(supervisor, run_dir):
    """A run that has just lost a rank is not one to ask: until the start after it has taken a step."""
    begun, end = time.time(), time.monotonic() + 60
    while supervisor.poll() is None and time.monotonic() < end and (run_dir / "metrics.jsonl").stat().st_mtime <= begun + 1:
        time.sleep(0.2)


def expected(interval_s, stall_s, detect_s, restart_s, mtbf_s):
    """The share of wall time that is effective training: stalls between failures, and for each failure half an interval that is
    trained again, its detection and the restart."""
    return max(0, (1 - stall_s / (interval_s + stall_s)) * (1 - (interval_s / 2 + detect_s + restart_s) / mtbf_s))


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
        plain = TINY[:TINY.index("--log-every")] + TINY[TINY.index("--log-every") + 2:]
        flags = plain + ["--data", str(data), "--batch-size-per-rank", "32", "--steps", "100000000",
                                           "--lr-schedule", "constant", "--lr", "1e-4", "--log-every", "10"]
        command = [str(ROOT / "launch/supervise"), "-np", str(RANKS), "--build", str(BINARY.parent), "--restarts", "20", "--",
                   "train", "--run-dir", str(run_dir), "--checkpoint-every", str(wanted.every), *flags]
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = collections.deque(maxlen=20)
        threading.Thread(target=lambda: said.extend(process.stderr), daemon=True).start()
        kills = kill_at_random(process, run_dir, dice, wanted.mtbf, time.monotonic() + 60 * wanted.minutes)
        wait_for_training(process, run_dir)
        process.send_signal(signal.SIGUSR1)
        code = process.wait(timeout=120)
        if code != 75:
            sys.exit(f"the supervisor ended with {code} and not as asked:\n{''.join(said)}")
        record = json.loads((run_dir / "run.json").read_text())
        progress = [json.loads(line) for line in (run_dir / "ettr.jsonl").read_text().splitlines()]
    report(wanted, kills, code, record, progress)


def faults_of(wanted, account):
    """What no account of such a run may say: that it was over early, or that something took less than no time."""
    faults = [f"{name} is {value:.2f}" for name, value in account.items() if name.endswith("_s") and value < -0.05]
    if account["wall_s"] < 60 * wanted.minutes:
        faults.append(f"wall_s is {account['wall_s']:.0f}, less than {wanted.minutes:g} minutes")
    return faults


def report(wanted, kills, code, record, ledger):
    account = record["ettr_account"]
    step_s = record["performance"]["step_ms_p50"] / 1e3
    saves = max(1, sum(1 for line in ledger if line["event"] == "progress"))
    failures = max(1, account["failures"])
    costs = {"interval_s": wanted.every * step_s, "stall_s": account["checkpoint_stall_s"] / saves,
             "detect_s": account["detection_s"] / failures,
             "restart_s": (account["startup_s"] + account["restore_s"] + account["idle_s"]) / account["starts"]}
    formula = expected(**costs, mtbf_s=account["wall_s"] / failures)
    hourly = expected(**costs, mtbf_s=3600)
    lines = [f"{datetime.date.today()}: {account['wall_s']:.0f} s of training on {RANKS} CPU ranks, {kills} ranks killed (SIGKILL, random rank and moment, "
             f"seed {wanted.seed}), ended with {code} as asked.", "",
             f"- effective training time: measured {100 * record['ettr']:.1f} %, by the formula {100 * formula:.1f} %",
             f"- by the measured costs, with one failure an hour: {100 * hourly:.1f} %",
             "- where the time went, in seconds: " + ", ".join(f"{name[:-2]} {value:.1f}" for name, value in account.items() if name.endswith("_s")),
             "- costs of the formula, in seconds: " + ", ".join(f"{name[:-2]} {value:.3f}" for name, value in costs.items())]
    print("\n".join(lines))
    (ROOT / "tests/soak/ettr.md").write_text("# Effective training time under failures\n\n" + "\n".join(lines) + "\n\nMade by `tests/soak/ettr.py`.\n")
    faults = faults_of(wanted, account)
    if abs(record["ettr"] - formula) > 0.02 or hourly < 0.97:
        faults.append("the effective training time is not what it should be")
    sys.exit("\n".join(faults) if faults else 0)


if __name__ == "__main__":
    main()
