"""Ranks are killed at random moments, saves included, and the run is started again each time: no finished checkpoint is lost, none
is half-visible, and the end is bit-identical to the run that nobody disturbed. No process stays behind, and nothing in /dev/shm where
this user may give the runs one of their own (file_systems_test looks at that alone, and is reported as skipped elsewhere).

SIDESTREAM_RANDOM_KILLS=N kills (5); SIDESTREAM_TEST_SEED repeats them.
"""

import hashlib
import os
import pathlib
import random
import re
import sys
import time

from support import TINY, check, checkpoint, losses, make_data, may_mount, processes_of_ranks, train, with_own_shared_memory, workspace

KILLED = 137
OWN_SHARED_MEMORY = "SIDESTREAM_TEST_OWN_SHARED_MEMORY"
RANKS, STEPS, EVERY = 2, 80, 4
# Four kills in ten are aimed at a save, which is short; the others hit any moment of a step, and the start, restoring included.
PLACES = ["checkpoint", "commit", "data", "forward", "update", "checkpoint", "start", "commit", "forward", "start"]
STARTING_MS = [0, 200, 400, 600, 800]  # from before MPI starts to the first steps


def hashes(folder):
    """Of what the files hold, whatever their manifest says of them."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()
            if file.suffix == ".safetensors"}


def finished(run_dir):
    """Steps of checkpoints with a final name."""
    folders = (run_dir / "checkpoints").iterdir() if (run_dir / "checkpoints").exists() else []
    return sorted(int(folder.name[5:]) for folder in folders if re.fullmatch(r"step_\d+", folder.name))


def check_nothing_left(run_dir, fault):
    left = processes_of_ranks(run_dir)
    check(not left, f"{fault}: processes {left} are left")
    names = os.listdir("/dev/shm") if OWN_SHARED_MEMORY in os.environ else []
    check(not names, f"{fault}: left in /dev/shm: {names}")


def main():
    kills = int(os.environ.get("SIDESTREAM_RANDOM_KILLS", "5"))
    seed = int(os.environ.get("SIDESTREAM_TEST_SEED", time.time_ns() % 1_000_000))
    print(f"{kills} kills, seed {seed}", flush=True)
    dice = random.Random(seed)
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", "4", "--checkpoint-every", str(EVERY), "--keep-checkpoints", "0",
                        "--steps", str(STEPS)]
        train(RANKS, root / "whole", flags)
        known = {step: hashes(checkpoint(root / "whole", step)) for step in finished(root / "whole")}
        run_dir, lives = root / "killed-0", 0
        for kill in range(kills):
            start = finished(run_dir)[-1] if finished(run_dir) else 0
            if start > STEPS // 2:  # no room for many more: the next
                check_end(root, run_dir, flags, known)
                run_dir, start = root / f"killed-{kill}", 0
            place = dice.choice(PLACES)
            rank = 0 if place == "commit" else dice.randrange(RANKS)  # the others have no part in it
            if place == "start":
                # Slowed down, so that no machine is done with all steps before.
                fault = f"kill:rank={rank},at=start,ms={dice.choice(STARTING_MS)};slow:ms=40"
            else:
                fault = f"kill:rank={rank},step={dice.randint(start + 1, start + 10)},at={place},ms={dice.choice([0, 0, 1, 3, 10, 30])}"
            before = finished(run_dir)
            said = train(RANKS, run_dir, flags + ["--resume", "auto", "--inject", fault], expect=KILLED)
            check("skipped checkpoint" not in said, f"{fault}: a checkpoint could not be used (seed {seed})\n{said}")
            check_nothing_left(run_dir, fault)
            after = finished(run_dir)
            check(set(before) <= set(after), f"{fault}: lost {set(before) - set(after)} (seed {seed})")
            for step in after:
                check(hashes(checkpoint(run_dir, step)) == known[step], f"{fault}: other bits in step {step} (seed {seed})")
            lives += 1
        check_end(root, run_dir, flags, known)
        print(f"{lives} kills survived")


def check_end(root, run_dir, flags, known):
    said = train(RANKS, run_dir, flags + ["--resume", "auto"])
    check("skipped checkpoint" not in said, f"{run_dir.name}: a checkpoint could not be used\n{said}")
    check(losses(run_dir) == losses(root / "whole"), f"{run_dir.name}: other losses")
    check(hashes(checkpoint(run_dir, STEPS)) == known[STEPS], f"{run_dir.name}: other weights at the end")
    check(not [folder for folder in (run_dir / "checkpoints").iterdir() if "pending" in folder.name], "a save is left half-done")


if OWN_SHARED_MEMORY in os.environ or not may_mount():
    main()
else:
    again = with_own_shared_memory([sys.executable, *sys.argv])
    os.execvpe(again[0], again, os.environ | {OWN_SHARED_MEMORY: "1"})
