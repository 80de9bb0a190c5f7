"""Killed at a random step and resumed: losses and final weights as of the run that was not killed."""

import os
import pathlib
import random
import signal
import subprocess
import time

from support import BINARY, TINY, check, checkpoint, environment, losses, make_data, metrics, mpirun, train, workspace

STEPS = 30


def lines_in(path):
    return path.read_text().count("\n") if path.exists() else 0


def kill_after(ranks, run_dir, flags, step):
    """Starts a run, waits until it has logged `step` and kills all of it without warning."""
    process = subprocess.Popen(mpirun(ranks, [BINARY, "train", "--run-dir", run_dir, *flags]), env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while lines_in(run_dir / "metrics.jsonl") < step and process.poll() is None:
        check(time.monotonic() < deadline, "the run to be killed does not get anywhere")
        time.sleep(0.002)
    subprocess.run(["pkill", "-KILL", "-f", f"sidestream train --run-dir {run_dir} "], check=False)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def check_kill(root, ranks, precision, seed):
    name = f"{ranks}-{precision}"
    flags = TINY + ["--data", str(root / "data"), "--batch-size-per-rank", "4", "--lr", "1e-3", "--steps", str(STEPS),
                    "--precision", precision, "--dropout", "0.1", "--checkpoint-every", "4", "--keep-checkpoints", "2"]
    whole, killed = root / f"whole-{name}", root / f"killed-{name}"
    train(ranks, whole, flags)
    step = random.Random(seed).randint(5, STEPS - 5)
    kill_after(ranks, killed, flags + ["--resume", "auto"], step)
    check(lines_in(killed / "metrics.jsonl") < STEPS, "the run ended before it could be killed")
    train(ranks, killed, flags + ["--resume", "auto", "--zero", "0"])  # the same state, kept by every rank
    check([line["step"] for line in metrics(killed)] == list(range(1, STEPS + 1)), "metrics.jsonl repeats or lacks steps")
    check(losses(killed) == losses(whole), f"{name}: losses differ after a kill at step {step}")
    weights = [(checkpoint(run, STEPS) / "model.safetensors").read_bytes() for run in (whole, killed)]
    check(weights[0] == weights[1], f"{name}: final weights differ after a kill at step {step}")


def check_other_world_size(root):
    """Saved by two ranks, resumed by one with the same global batch: the same samples, nearly the same losses."""
    common = TINY + ["--data", str(root / "data"), "--lr", "1e-3", "--lr-schedule", "constant"]
    train(2, root / "two", common + ["--batch-size-per-rank", "4", "--steps", "16"])
    train(2, root / "half", common + ["--batch-size-per-rank", "4", "--steps", "8"])
    train(1, root / "half", common + ["--batch-size-per-rank", "8", "--steps", "16", "--resume", "auto"])
    apart = max(abs(a - b) for a, b in zip(losses(root / "two"), losses(root / "half"), strict=True))
    check(apart <= 1e-5, f"resumed at another world size: losses differ by {apart}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        make_data(root / "data")
        for seed, (ranks, precision) in enumerate([(1, "fp32"), (2, "fp32"), (2, "bf16")]):
            check_kill(root, ranks, precision, int(os.environ.get("SIDESTREAM_TEST_SEED", "7")) + seed)
        check_other_world_size(root)


main()
