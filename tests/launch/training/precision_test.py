"""bf16 ends within twice the spread of three seeds of fp32; so do its gradients when they travel in fp32, and those of fp32 in bf16."""

import pathlib
import statistics

from support import TINY, check, losses, make_data, train, workspace


def final_loss(root, data, name, flags):
    common = TINY + ["--data", str(data), "--steps", "150", "--batch-size-per-rank", "8", "--lr", "2e-3"]
    train(2, root / name, common + flags)
    return statistics.mean(losses(root / name)[-20:])


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        seeds = [final_loss(root, data, f"fp32-{seed}", ["--seed", str(seed)]) for seed in (1, 2, 3)]
        spread = max(seeds) - min(seeds)
        for name, flags in {"bf16": ["--precision", "bf16"], "bf16-reduce-fp32": ["--precision", "bf16", "--reduce-dtype", "fp32"],
                            "fp32-reduce-bf16": ["--precision", "fp32", "--reduce-dtype", "bf16"]}.items():
            loss = final_loss(root, data, name, ["--seed", "1", *flags])
            check(abs(loss - statistics.mean(seeds)) <= 2 * spread,
                  f"{name} ends at {loss}, fp32 at {seeds} (spread {spread})")


main()
