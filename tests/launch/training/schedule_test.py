"""The learning rate of every step is that of the schedule, warm-up and decay that the flags say (core/optim/schedule.hpp)."""

import math
import pathlib

from support import TINY, check, make_data, metrics, train, workspace

STEPS, WARMUP, PEAK, LEAST = 12, 3, 2e-3, 0.25  # least: part of the peak
DECAY_OF_WSD = round(0.2 * STEPS)


def decayed(progress, shape):
    return PEAK * (LEAST + (1 - LEAST) * shape(progress))


def linear(progress):
    return 1 - progress


def cosine(progress):
    return (1 + math.cos(math.pi * progress)) / 2


def rate(kind, step):
    if step <= WARMUP:
        return PEAK * step / WARMUP
    if kind == "constant":
        return PEAK
    begin = max(WARMUP, STEPS - DECAY_OF_WSD) if kind == "wsd" else WARMUP
    progress = max(0, step - 1 - begin) / (STEPS - begin)
    return decayed(progress, cosine if kind == "cosine" else linear)


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        for kind in ("constant", "linear", "cosine", "wsd"):
            train(1, root / kind, TINY + ["--data", data, "--steps", STEPS, "--lr", PEAK, "--lr-schedule", kind,
                                          "--warmup-steps", WARMUP, "--min-lr-ratio", LEAST])
            found = [line["lr"] for line in metrics(root / kind)]
            expected = [rate(kind, step) for step in range(1, STEPS + 1)]
            check(len(found) == STEPS, f"{kind}: expected {STEPS} steps, found {found}")
            for step, (own, right) in enumerate(zip(found, expected, strict=True), 1):
                check(math.isclose(own, right, rel_tol=1e-5), f"{kind}, step {step}: expected {right}, found {own}")


main()
