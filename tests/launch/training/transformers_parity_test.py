"""transformers loads our checkpoint as it is and trains on the same tokens: losses and gradient norms agree."""

import json
import pathlib
import subprocess
import sys

from support import ROOT, check, checkpoint, environment, make_data, metrics, train, workspace

STEPS, BATCH, LENGTH, LR = 50, 8, 64, 3e-4
BOUNDS = {"fp32": 1e-4, "bf16": 3e-2}  # of losses, absolute; of gradient norms, relative


def reference(folder, data, precision):
    done = subprocess.run([sys.executable, ROOT / "tests/reference/hf_train.py", "--checkpoint", folder, "--data", data,
                           "--steps", str(STEPS), "--batch-size", str(BATCH), "--sequence-length", str(LENGTH), "--lr",
                           str(LR), "--precision", precision], env=environment(), capture_output=True, text=True)
    check(done.returncode == 0, f"the reference failed\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        common = ["--model", "gpt2-tiny", "--sequence-length", str(LENGTH), "--data", str(data), "--shuffle", "off", "--lr",
                  str(LR), "--lr-schedule", "constant", "--eval-every", "0", "--pad-vocab", "64"]
        train(1, root / "initial", common + ["--steps", "0", "--batch-size-per-rank", str(BATCH)])
        initial = checkpoint(root / "initial", 0)
        for precision, bound in BOUNDS.items():
            run_dir = root / precision
            train(2, run_dir, common + ["--steps", str(STEPS), "--batch-size-per-rank", str(BATCH // 2), "--precision",
                                        precision, "--init", str(initial)])
            for ours, theirs in zip(metrics(run_dir), reference(initial, data, precision), strict=True):
                loss = abs(ours["loss"] - theirs["loss"])
                norm = abs(ours["grad_norm"] / theirs["grad_norm"] - 1)
                where = f"{precision}, step {ours['step']}: {ours} against {theirs}"
                check(loss <= bound, f"loss differs by {loss}; {where}")
                check(norm <= bound, f"gradient norm differs by {norm}; {where}")


main()
