"""Checkpoints that are written while training goes on: the same bits as written at once, whatever fails on the way all ranks agree,
the older ones stay, nothing half-written is ever taken for one. (Real file systems that are full or read-only: file_systems_test.)"""

import json
import os
import pathlib
import re

from support import TINY, check, checkpoint, losses, make_data, only_message, train, workspace

CHECKPOINT, KILLED = 4, 137
RANKS = 2
DISK_MS = 3000  # so much longer one save takes: what else the machine does is little beside it


def folders(run_dir):
    return sorted(folder.name for folder in (pathlib.Path(run_dir) / "checkpoints").iterdir())


def hashes(folder):
    return {file["name"]: file["sha256"] for file in json.loads((folder / "manifest.json").read_text())["files"]}


def check_same_bits(root, flags):
    saving = flags + ["--steps", "12", "--checkpoint-every", "5", "--keep-checkpoints", "0"]
    train(RANKS, root / "async", saving)
    train(RANKS, root / "sync", saving + ["--async-checkpoints", "off"])
    check(folders(root / "async") == folders(root / "sync") == [f"step_{step:08d}" for step in (5, 10, 12)], folders(root / "async"))
    for step in (5, 10, 12):
        check(hashes(checkpoint(root / "async", step)) == hashes(checkpoint(root / "sync", step)), f"other bits at step {step}")
    check(losses(root / "async") == losses(root / "sync"), "other losses")


def check_training_goes_on(root, flags):
    """While a disk takes its time, steps are taken: training waits for a small part of the save only."""
    slow = ["--inject", f"slow:rank=0,ms=20; slow:rank=0,step=150,steps=1,at=checkpoint,ms={DISK_MS}"]
    output = train(RANKS, root / "slow", flags + ["--steps", "400", "--checkpoint-every", "150", *slow])
    waited, total = map(float, re.search(r"saved checkpoint of step 150 \(training waited ([\d.]+) s of ([\d.]+) s\)", output).groups())
    check(total >= 1e-3 * DISK_MS, f"took {total} s")
    check(waited < 0.5 * total, f"training waited {waited} s for a save of {total} s")
    check("a save holds training up for" in output and "(Young)" in output, output)
    blocking = train(RANKS, root / "slow-sync", flags + ["--steps", "160", "--checkpoint-every", "150", "--async-checkpoints", "off", *slow])
    held_up = float(re.search(r"saved checkpoint of step 150 \(training waited ([\d.]+) s", blocking).group(1))
    check(held_up >= 1e-3 * DISK_MS, f"blocking, but waited {held_up}")


def check_planted_disk_full(root, flags):
    for rank in (0, 1):
        run_dir = root / f"full-{rank}"
        output = train(RANKS, run_dir, flags + ["--steps", "40", "--checkpoint-every", "5", "--inject", f"disk-full:rank={rank},step=10"], expect=CHECKPOINT)
        found = only_message(output, f"full-{rank}")
        check(f"rank {rank}: planted fault" in found and "No space left on device" in found, output)
        check(folders(run_dir) == ["step_00000005"], folders(run_dir))
        train(RANKS, run_dir, flags + ["--steps", "12", "--checkpoint-every", "5", "--resume", "auto"])


def check_kills(root, flags):
    saving = flags + ["--steps", "14", "--checkpoint-every", "5"]
    train(RANKS, root / "whole", saving)
    for place in ("checkpoint", "commit"):
        for rank in (0, 1) if place == "checkpoint" else (0,):
            run_dir = root / f"killed-{place}-{rank}"
            train(RANKS, run_dir, saving + ["--inject", f"kill:rank={rank},step=10,at={place}"], expect=KILLED)
            check([name for name in folders(run_dir) if not name.endswith(".pending")] == ["step_00000005"], folders(run_dir))
            output = train(RANKS, run_dir, saving + ["--resume", "auto"])
            check("resumed from" in output and "step_00000005" in output, output)
            check(losses(run_dir) == losses(root / "whole"), f"other losses after a kill at {place}")
            check(not [name for name in folders(run_dir) if "pending" in name], folders(run_dir))


def main():
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", "4", "--lr-schedule", "constant"]
        check_same_bits(root, flags)
        check_training_goes_on(root, flags)
        check_planted_disk_full(root, flags)
        check_kills(root, flags)


main()
