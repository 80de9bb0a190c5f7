"""launch/nsys-collect on two CPU ranks: the recorded steps and the buckets' ranges are in both SQLite files; by hand too."""

import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
from running import completed, running  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SIDESTREAM_BUILD", ROOT / "build/release"))
FIRST, LAST, STEPS, LONG = 3, 5, 8, 800
DOMAIN_CREATE = 75


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def command(folder, how, steps):
    words = [ROOT / "launch/nsys-collect", "-np", "2", *how, "--output", folder / "nsys", "--build", BUILD, "--", "train",
             "--model", "gpt2-tiny", "--data", "synthetic", "--sequence-length", "32", "--threads", "1", "--steps", steps,
             "--batch-size-per-rank", "2", "--device", "cpu", "--run-dir", folder / "run"]
    return [str(word) for word in words]


def collect(folder):
    done = completed(command(folder, ["--steps", f"{FIRST}:{LAST}"], STEPS), 240)
    check(done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}")
    check(f"step {STEPS}/{STEPS}" in done.stdout, f"training did not go on after the recording\n{done.stdout}")
    return folder / "nsys"


def ranges_of(file):
    """(name, start, end) of every range in our domain, by start."""
    database = sqlite3.connect(file)
    domains = {row[0] for row in database.execute(
        "select domainId from NVTX_EVENTS where eventType = ? and text = 'sidestream'", (DOMAIN_CREATE,))}
    check(domains, f"{file}: no domain sidestream")
    rows = database.execute(
        "select coalesce(s.value, n.text), n.start, n.end, n.domainId from NVTX_EVENTS n "
        "left join StringIds s on n.textId = s.id where n.end is not null order by n.start")
    return [row[:3] for row in rows if row[3] in domains]


def inside(inner, outer):
    return outer[1] <= inner[1] and inner[2] <= outer[2]


def check_rank(file):
    ranges = ranges_of(file)
    steps = [one for one in ranges if one[0].startswith("ProfilerStep#")]
    names = [one[0] for one in steps]
    check(names == [f"ProfilerStep#{step}" for step in range(FIRST, LAST + 1)], f"{file}: steps {names}")
    for step in steps:
        for phase in ("data", "forward", "backward", "allreduce", "optimizer"):
            check(any(one[0] == phase and inside(one, step) for one in ranges), f"{file}: no {phase} in {step[0]}")
    buckets = [sum(one[0] == "allreduce" and inside(one, step) for one in ranges) for step in steps]
    check(min(buckets) >= 1 and len(set(buckets)) == 1, f"{file}: buckets a step {buckets}")
    return names, buckets


def call(switch):
    done = subprocess.run([switch], text=True, capture_output=True, timeout=120)
    check(done.returncode == 0, f"{switch}: {done}")


def check_by_hand(folder):
    """Started and stopped while training runs: whole steps of both ranks are in the files, training goes on."""
    lines, recorded = [], False
    with running(command(folder, ["--interactive"], LONG)) as process:
        for line in process.stdout:
            lines.append(line)
            if "batch_cost" in line and not recorded:
                recorded = True
                call(folder / "nsys/start")
                time.sleep(1)
                call(folder / "nsys/stop")
        process.wait(timeout=60)
    late = subprocess.run([folder / "nsys/start"], text=True, capture_output=True)
    check(late.returncode == 2 and "the run has ended" in late.stderr, f"start after the run: {late}")
    check(process.returncode == 0 and any(f"step {LONG}/{LONG}" in line for line in lines), "".join(lines))
    for rank in range(2):
        names = [one[0] for one in ranges_of(folder / f"nsys/recording-1/rank_0000{rank}.sqlite")]
        check(sum(name.startswith("ProfilerStep#") for name in names) >= 1, f"rank {rank}: no step in {set(names)}")


def check_interrupted(folder):
    """Ctrl-C once: the ranks save and stop, the recording is kept, nothing goes on running."""
    lines = []
    with running(command(folder, ["--steps", f"{FIRST}:{10 * LONG}"], 10 * LONG)) as process:
        for line in process.stdout:
            lines.append(line)
            if re.search(r"step \d+[1-9]\d/", line):
                break
        process.send_signal(signal.SIGINT)
        lines.append(process.communicate(timeout=120)[0])
        left = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True).stdout
        check(not left, f"still running: {left}")
    check(process.returncode == 75, f"exit code {process.returncode}\n{''.join(lines)}")
    for rank in range(2):
        names = [one[0] for one in ranges_of(folder / f"nsys/rank_0000{rank}.sqlite")]
        check(sum(name.startswith("ProfilerStep#") for name in names) >= 1, f"rank {rank}: no step in {set(names)}")


def main():
    with tempfile.TemporaryDirectory(prefix="sidestream-nsys-") as name:
        output = collect(pathlib.Path(name))
        files = sorted(output.glob("rank_*.sqlite"))
        check([file.name for file in files] == ["rank_00000.sqlite", "rank_00001.sqlite"], f"files {files}")
        check(len(list(output.glob("rank_*.nsys-rep"))) == 2, "a report a rank is expected")
        found = [check_rank(file) for file in files]
        check(found[0] == found[1], f"the ranks differ: {found}")
    with tempfile.TemporaryDirectory(prefix="sidestream-nsys-") as name:
        check_by_hand(pathlib.Path(name))
    with tempfile.TemporaryDirectory(prefix="sidestream-nsys-") as name:
        check_interrupted(pathlib.Path(name))
    wrong = subprocess.run([ROOT / "launch/nsys-collect", "-np", "2", "--steps", "9-3", "--", "train"],
                           text=True, capture_output=True)
    check(wrong.returncode == 2 and "FIRST:LAST" in wrong.stderr, f"a wrong --steps: {wrong}")


if __name__ == "__main__":
    main()
