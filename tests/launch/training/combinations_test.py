"""Random combinations of flags. What a run computes is drawn once: model, ranks, precision, fused operators, optimizer. What may
not change a bit of it is drawn several times: how gradients travel, how state is kept, what is computed again, loaded, saved,
watched and recorded; and one run of each draw is killed at a random step and goes on with flags of yet another draw. Losses and
final weights are bit-identical. Without dropout, one rank with the joined batch comes to the same losses within rounding.

SIDESTREAM_COMBINATIONS: how many draws, SIDESTREAM_TEST_SEED: the first one's seed; each is named by its own."""

import os
import pathlib
import random
import shutil

from support import (BINARY, check, check_near, checkpoint, completed, faulty_environment, losses, make_data, metrics, mpirun, train,
                     with_own_shared_memory, workspace)

STEPS = 8
NEUTRAL_DRAWS = 2
FIXED = ["--threads", "1", "--log-every", "1", "--steps", str(STEPS), "--lr", "1e-3"]

# Heads, width: also a width that fills no vector, and heads of odd sizes.
SHAPES = [(4, 64), (2, 64), (3, 42), (1, 32), (5, 40)]


def maybe(draw, flag, values, chance=0.5):
    return [flag, str(draw.choice(values))] if draw.random() < chance else []


def draw_model(draw):
    if draw.random() < 0.15:
        return ["--model", "mlp"]
    heads, width = draw.choice(SHAPES)
    return ["--model", "gpt2-micro", "--heads", str(heads), "--width", str(width), "--layers", str(draw.choice([1, 2, 3])),
            *maybe(draw, "--dropout", ["0.1"], 0.4)]


def draw_arithmetic(draw):
    """What decides over the bits."""
    algorithm = draw.choice(["adamw", "adamw", "sgd"])
    precision = draw.choice(["fp32", "bf16"])
    flags = [*draw_model(draw), "--algorithm", algorithm, "--precision", precision,
             "--sequence-length", str(draw.choice([16, 31, 32])), "--grad-accumulation", str(draw.choice([1, 1, 2, 3])),
             *maybe(draw, "--fused-ops", ["off"], 0.3), *maybe(draw, "--fused-optimizer", ["off"], 0.3),
             *maybe(draw, "--loss-chunks", [1, 2, 5]), *maybe(draw, "--grad-clip", [0, 0.1]), *maybe(draw, "--weight-decay", [0, 0.2]),
             *maybe(draw, "--lr-schedule", ["constant", "linear"]), *maybe(draw, "--warmup-steps", [3]),
             *maybe(draw, "--reduce-dtype", ["bf16" if precision == "fp32" else "fp32"], 0.4),
             *maybe(draw, "--pad-vocab", [1, 64], 0.3), *maybe(draw, "--flush-denormals", ["off"], 0.3), *maybe(draw, "--seed", [3, 4])]
    if algorithm == "sgd":
        flags += maybe(draw, "--momentum", [0, 0.9])
    elif "--fused-optimizer" not in flags:
        flags += maybe(draw, "--optimizer-state-dtype", ["bf16"], 0.3)
    return flags


def draw_neutral(draw, ranks, common):
    """What may not change a bit."""
    kept = [0] if "--fused-optimizer" in common else [0, 1]  # sliced state has no other optimizer
    flags = [*maybe(draw, "--shared-memory", ["off"], 0.3 if ranks <= 2 else 0),  # two addends have one sum, more have an order
             *maybe(draw, "--gradient-as-bucket-view", ["off"]), *maybe(draw, "--zero", kept),
             *maybe(draw, "--pin-threads", ["off"]), *maybe(draw, "--huge-pages", ["off"]), *maybe(draw, "--keep-memory", ["off"]),
             *maybe(draw, "--late-loss", ["off"]), *maybe(draw, "--ranges", ["layers"]), *maybe(draw, "--record", ["on", "alternate"]),
             *maybe(draw, "--async-checkpoints", ["off"]), *maybe(draw, "--checkpoint-every", [1, 2, 5]),
             *maybe(draw, "--keep-checkpoints", [1]), *maybe(draw, "--drift-every", [1, 3], 0.3),
             *maybe(draw, "--check-collectives", ["on"], 0.3), *maybe(draw, "--eval-every", [2, 3]),
             *maybe(draw, "--nan-policy", ["skip", "rollback"], 0.3), *maybe(draw, "--spike-policy", ["warn", "skip"], 0.3),
             *maybe(draw, "--loader-workers", [1, 2]), *maybe(draw, "--deterministic", ["on"], 0.2)]
    if "--loader-workers" not in flags:
        flags += ["--loader-workers", "0"] if draw.random() < 0.3 else maybe(draw, "--prefetch", [1, 7])
    how = draw.random()
    if how < 0.2:
        flags += ["--overlap", "off", "--bucketing", "off"]
    else:
        flags += [*maybe(draw, "--overlap", ["off"], 0.3), *maybe(draw, "--bucket-mb", [0.02, 0.1, 100, "auto"], 0.7),
                  *maybe(draw, "--first-bucket-mb", [0.005, 0.05])]
    if draw.random() < 0.2:
        flags += ["--profile", f"wait={draw.choice([1, 3])},warmup=1,active=2"]
    return flags


def draw_recompute(draw, arithmetic):
    return [] if "mlp" in arithmetic else maybe(draw, "--recompute", ["activations", "mlp", "attention", "blocks"], 0.6)


def weights(run_dir):
    return (checkpoint(run_dir, STEPS) / "model.safetensors").read_bytes()


def killed(ranks, run_dir, flags, step, victim):
    """A run whose rank kills itself in this step."""
    command = with_own_shared_memory(mpirun(ranks, [BINARY, "train", "--run-dir", run_dir, *flags, "--inject", f"kill:rank={victim},step={step}"]))
    done = completed(command, 240, faulty_environment())
    check(done.returncode != 0, f"{run_dir}: nothing was killed\n{done.stdout}")


def check_same(what, found, expected):
    check([line["step"] for line in metrics(found)] == list(range(1, STEPS + 1)), f"{what}: metrics.jsonl repeats or lacks steps")
    check(losses(found) == losses(expected), f"{what}: {losses(found)} is not {losses(expected)}")
    check(weights(found) == weights(expected), f"{what}: weights differ")


def check_neutral(root, draw, ranks, common):
    for number in range(NEUTRAL_DRAWS):
        flags = draw_neutral(draw, ranks, common) + draw_recompute(draw, common)
        train(ranks, root / f"neutral-{number}", common + flags)
        check_same(f"{ranks} ranks, {' '.join(common)} | {' '.join(flags)}", root / f"neutral-{number}", root / "expected")


def check_interrupted(root, draw, ranks, common):
    run_dir, before, after = root / "killed", draw_neutral(draw, ranks, common), draw_neutral(draw, ranks, common)
    step = draw.randint(2, STEPS)
    killed(ranks, run_dir, common + before, step, draw.randrange(ranks))
    train(ranks, run_dir, common + after + ["--resume", "auto"])
    check_same(f"{ranks} ranks, {' '.join(common)} | {' '.join(before)} | killed in step {step} | {' '.join(after)}", run_dir, root / "expected")


def check_one_rank(root, ranks, common, batch):
    flags = common.copy()
    flags[flags.index("--batch-size-per-rank") + 1] = str(ranks * batch)
    train(1, root / "one", flags)
    # In bf16 a weight, or a gradient, that is half-way between two numbers may fall to either side.
    bounds = {"apart": 2e-2, "norms": 0.1} if "bf16" in common else {"apart": 1e-5, "norms": 1e-4}
    check_near(f"{ranks} ranks, {' '.join(common)}, and one rank with the joined batch", root / "expected", root / "one", **bounds)


def check_draw(root, data, seed):
    draw = random.Random(seed)
    ranks, batch = draw.choice([1, 2, 2, 3, 4]), draw.choice([1, 2, 3])
    common = [*FIXED, *draw_arithmetic(draw), "--batch-size-per-rank", str(batch), "--data", str(data)]
    print(f"seed {seed}: {ranks} ranks, {' '.join(common)}", flush=True)
    train(ranks, root / "expected", common)
    check_neutral(root, draw, ranks, common)
    check_interrupted(root, draw, ranks, common)
    if ranks > 1 and "--dropout" not in common and "--optimizer-state-dtype" not in common:
        check_one_rank(root, ranks, common, batch)


def main():
    first, count = (int(os.environ.get(f"SIDESTREAM_{name}", default)) for name, default in (("TEST_SEED", "1"), ("COMBINATIONS", "4")))
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        for seed in range(first, first + count):
            (root / "runs").mkdir()
            check_draw(root / "runs", data, seed)
            shutil.rmtree(root / "runs")


main()
