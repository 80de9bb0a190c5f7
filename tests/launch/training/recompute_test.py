"""What is computed again in backward (--recompute) and losses in chunks (--loss-chunks): the same losses and weights, bit for bit
for every level, on two ranks, with and without fused operators and overlap, with dropout and gradient accumulation; and what a
profile says of it."""

import gzip
import json
import pathlib

from support import SMALL, check, checkpoint, losses, make_data, metrics, train, workspace

STEPS = 4
LEVELS = ("activations", "mlp", "attention", "blocks")
FLAGS = [*SMALL, "--batch-size-per-rank", "3", "--grad-accumulation", "2", "--lr", "1e-3"]
# Small buckets: several of them are reduced while backward computes again.
BUCKETS = ["--bucket-mb", "0.05", "--first-bucket-mb", "0.01"]


def steps(count):
    return ["--steps", str(count), "--lr-schedule", "constant"]


def weights(run_dir):
    return (checkpoint(run_dir, STEPS) / "model.safetensors").read_bytes()


def check_levels(root, data):
    for fused in ("on", "off"):
        for precision in ("fp32", "bf16"):
            # Fused attention has no dropout: without, it is what runs.
            for dropout in ("0", "0.1"):
                name = f"fused-{fused}-{precision}-{dropout}"
                common = [*FLAGS, *steps(STEPS), *BUCKETS, "--data", str(data), "--precision", precision, "--fused-ops", fused, "--dropout", dropout]
                train(2, root / name, common)
                expected, expected_weights = losses(root / name), weights(root / name)
                check(expected[-1] < expected[0], f"{name}: the loss does not fall: {expected}")
                levels = LEVELS if dropout == "0.1" else ("mlp", "blocks")
                for level in levels:
                    run_dir = root / f"{name}-{level}"
                    train(2, run_dir, [*common, "--recompute", level])
                    check(losses(run_dir) == expected, f"{name}, {level}: {losses(run_dir)} is not {expected}")
                    check(weights(run_dir) == expected_weights, f"{name}, {level}: weights differ")


def check_other_synchronisers(root, data):
    common = [*FLAGS, *steps(STEPS), "--data", str(data), "--dropout", "0.1"]
    expected = losses(root / "fused-on-fp32-0.1")
    for name, flags in {"overlap-off": ["--overlap", "off"], "bucketing-off": ["--overlap", "off", "--bucketing", "off"],
                        "copied": ["--gradient-as-bucket-view", "off", *BUCKETS], "zero-0": ["--zero", "0", *BUCKETS]}.items():
        run_dir = root / name
        train(2, run_dir, [*common, *flags, "--recompute", "blocks"])
        check(losses(run_dir) == expected, f"{name}: {losses(run_dir)} is not {expected}")


def check_resume(root, data):
    """From a run that keeps everything to one that does not, in the middle."""
    run_dir, flags = root / "resumed", [*FLAGS, *BUCKETS, "--data", str(data), "--dropout", "0.1"]
    train(2, run_dir, [*flags, *steps(2)])
    train(2, run_dir, [*flags, *steps(STEPS), "--resume", "auto", "--recompute", "blocks"])
    expected = losses(root / "fused-on-fp32-0.1")
    check(losses(run_dir) == expected, f"{losses(run_dir)} is not {expected}")


def check_chunks(root, data):
    """One chunk of LibTorch's operators is what they do without the flag; more are within rounding, evaluations too."""
    common = [*FLAGS, *steps(STEPS), "--data", str(data), "--fused-ops", "off", "--eval-tokens", "512"]
    common[common.index("--eval-every") + 1] = "2"
    found = {}
    for chunks in ("auto", "1", "7", "100000"):
        run_dir = root / f"chunks-{chunks}"
        train(2, run_dir, [*common, "--loss-chunks", chunks])
        found[chunks] = losses(run_dir) + [line["val_loss"] for line in metrics(run_dir) if line.get("val_loss") is not None]
    check(len(found["1"]) == STEPS + 2, found["1"])
    check(found["auto"] == found["1"], "so few logits are one chunk")
    for chunks in ("7", "100000"):
        apart = max(abs(a - b) for a, b in zip(found["1"], found[chunks], strict=True))
        check(apart < 1e-5, f"{chunks} chunks: losses are {apart} apart")
    check(found["7"] != found["1"], "7 chunks have added in the same order: are there chunks at all?")


def check_profile(root, data):
    """Operators that run again in backward are of their layer."""
    for fused in ("on", "off"):
        run_dir = root / f"profile-{fused}"
        train(1, run_dir, [*FLAGS, *steps(3), "--data", str(data), "--fused-ops", fused, "--recompute", "blocks",
                           "--profile", "wait=1,warmup=1,active=1", "--profile-modules"])
        with gzip.open(next(run_dir.glob("trace/*/*.json.gz"))) as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "cpu_op"]
        name = "sidestream::mlp" if fused == "on" else "aten::gelu"
        found = sorted((event["ts"], event.get("args", {}).get("Module Hierarchy")) for event in events if event["name"] == name)
        layers = [f"transformer.h.{layer}.mlp" for layer in range(4)]
        # Each of two micro-steps: forward, and once more in backward, from the last layer on.
        check([module for _, module in found] == 2 * (layers + layers[::-1]), f"{name}: {found}")
        backward = [event.get("args", {}).get("Module Hierarchy") for event in sorted(events, key=lambda event: event["ts"])
                    if event["name"] == ("sidestream::mlp_backward" if fused == "on" else "aten::gelu_backward")]
        check(backward == 2 * layers[::-1], f"backward of {name}: {backward}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        check_levels(root, data)
        check_other_synchronisers(root, data)
        check_resume(root, data)
        check_chunks(root, data)
        check_profile(root, data)


main()
