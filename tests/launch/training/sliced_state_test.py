"""--zero 1 where ranks share no memory: each keeps its slices of the optimizer's state, and learns what it learns with all of it."""

import json
import os
import pathlib
import subprocess

from support import BINARY, TINY, check, check_near, checkpoint, losses, make_data, metrics, train, workspace

# Its large weights are several blocks of a sum: slices cut through parameters.
SMALL = TINY[:-2] + ["--lr", "1e-3", "--lr-schedule", "constant", "--bucket-mb", "0.3"]  # evaluates where it is told to
NO_EVALUATION = TINY[-2:]
SLICED = ["--shared-memory", "off", "--zero", "1"]
WHOLE = ["--shared-memory", "off", "--zero", "0"]
TRACE = BINARY.parent / "sidestream-trace"


def model_bytes(run_dir, step):
    return (checkpoint(run_dir, step) / "model.safetensors").read_bytes()


def check_same(root, name, ranks, flags, steps):
    """With slices and without: losses, norms, validation losses and final weights are the same bits."""
    for kind, more in (("sliced", SLICED), ("whole", WHOLE)):
        train(ranks, root / f"{name}-{kind}", flags + ["--steps", str(steps), *more])
    lines = [[(line["loss"], line["grad_norm"], line.get("val_loss")) for line in metrics(root / f"{name}-{kind}")] for kind in ("sliced", "whole")]
    check(len(lines[0]) > 0 and lines[0] == lines[1], f"{name}: {lines[0]} is not {lines[1]}")
    weights = [model_bytes(root / f"{name}-{kind}", steps) for kind in ("sliced", "whole")]
    check(weights[0] == weights[1], f"{name}: other weights")


def check_toggles(root, flags):
    for precision in ("fp32", "bf16"):
        common = flags + ["--precision", precision, "--grad-accumulation", "2", "--eval-every", "3", "--eval-tokens", "256", "--drift-every", "1"]
        for ranks in (2, 3):
            check_same(root, f"{precision}-{ranks}", ranks, common, 6)
    check_same(root, "sgd", 2, flags + ["--algorithm", "sgd"], 4)
    narrow = ["--precision", "bf16", "--optimizer-state-dtype", "bf16"]
    check_same(root, "narrow-moments", 3, flags + narrow, 4)
    check_same(root, "recompute", 2, flags + ["--recompute", "blocks", "--loss-chunks", "3"], 4)
    flags = flags + NO_EVALUATION
    output = train(2, root / "told", flags + ["--steps", "2", "--drift-every", "1", *SLICED])
    check("--drift-every: after every update" in output, output)
    output = train(2, root / "untold", flags + ["--steps", "2", "--nccl-ctas", "8"])
    check("--nccl-ctas: no gradients travel over NCCL here" in output, output)
    check_same(root, "no-overlap", 2, flags + ["--overlap", "off"], 4)
    check_same(root, "plain-operators", 2, flags + ["--fused-ops", "off", "--dropout", "0.1"], 4)


def check_resume(root, flags, precision):
    """Saved by one kind and resumed by the other, and by as many ranks: the same bits. By fewer: nearly the same losses."""
    flags = flags + ["--precision", precision, "--checkpoint-every", "4", "--keep-checkpoints", "0"]
    train(3, root / f"straight-{precision}", flags + ["--steps", "12", "--batch-size-per-rank", "2", *WHOLE])
    for number, kinds in enumerate(((SLICED, SLICED), (SLICED, WHOLE), (WHOLE, SLICED))):
        run_dir = root / f"resumed-{precision}-{number}"
        for steps, kind in zip((6, 12), kinds, strict=True):
            train(3, run_dir, flags + ["--steps", str(steps), "--resume", "auto", "--batch-size-per-rank", "2", *kind])
        check(losses(run_dir) == losses(root / f"straight-{precision}"), f"{precision} {kinds}: other losses after a resume")
        for step in (4, 12):  # the first was written while training went on
            same = model_bytes(run_dir, step) == model_bytes(root / f"straight-{precision}", step)
            check(same, f"{precision} {kinds}: other weights at step {step}")
    run_dir = root / f"fewer-{precision}"
    for ranks, steps in ((3, 6), (2, 12)):
        train(ranks, run_dir, flags + ["--steps", str(steps), "--resume", "auto", "--batch-size-per-rank", str(6 // ranks), *SLICED])
    bounds = {"apart": 1e-5, "norms": 1e-4} if precision == "fp32" else {"apart": 0.02, "norms": 0.1}
    check_near(f"{precision}, with other ranks", run_dir, root / f"straight-{precision}", **bounds)


def check_policies(root, flags):
    """Updates that are left out, and weights that go back to a checkpoint."""
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    inject = ["--inject", "nan:rank=1,step=5"]
    check_same(root, "skip", 2, flags + ["--nan-policy", "skip", *inject], 8)
    check_same(root, "rollback", 2, flags + ["--nan-policy", "rollback", "--checkpoint-every", "4", *inject], 8)


def check_waits(root, flags):
    """A rank whose weights come late is waited for inside the next forward: that is communication, of one all-gather a bucket."""
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    late_ms = 60
    train(2, root / "late", flags + ["--steps", "24", "--record", "on", "--inject", f"slow:rank=1,ms={late_ms},at=update", *SLICED])
    first = json.loads((root / "late/run.json").read_text())["verdict"]["ranks"][0]
    check(first["comm_ms"] > late_ms / 2 > first["phases_ms"]["forward"], f"{first}")
    report = root / "late/report.json"
    subprocess.run([TRACE, "report", root / "late", "--json", report], check=True, capture_output=True)
    report = json.loads(report.read_text())
    names = {row["name"] for row in report["collectives"]}
    check("all_gather" in names and "weight_wait" not in names, f"{names}")
    steps = [step for step in report["steps"] if step["rank"] == 0 and step["step"] > 3 and not step["tags"]]
    exposed = sorted(step["exposed_comm_ns"] * 1e-6 for step in steps)
    check(exposed[len(exposed) // 2] > late_ms / 2, f"{exposed}")


def check_plan(root, data):
    """--dry-run counts the slices."""
    flags = ["--data", str(data), "--model", "gpt2-mini", "--sequence-length", "32"]
    bytes_of = {}
    for kind, more in (("sliced", SLICED), ("whole", WHOLE)):
        output = train(2, root / "plan", flags + ["--dry-run", *more])
        bytes_of[kind] = float(output.split("  moments")[1].split("MiB")[0])
        check(("pad the slices" in output) == (kind == "sliced"), output)
    check(0.5 <= bytes_of["sliced"] / bytes_of["whole"] < 0.6, f"moments: {bytes_of}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = SMALL + ["--data", str(data)]
        batch = ["--batch-size-per-rank", "4"]
        check_toggles(root, flags + batch)
        flags += NO_EVALUATION
        for precision in ("fp32", "bf16"):
            check_resume(root, flags, precision)
        check_policies(root, flags + batch)
        check_waits(root, flags + batch)
        check_plan(root, data)


main()
