"""Training on a GPU against training on the processor, and every strategy against the others. Needs a GPU."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from support import TINY, check, losses, train, workspace  # noqa: E402

STEPS = ["--data", "synthetic", "--steps", "20", "--batch-size-per-rank", "4", "--seed", "7"]
SHARED = ["--device", "cuda", "--share-gpus", "on", "--deterministic"]


def check_against_cpu(root):
    for ranks in (1, 2):
        cpu = root / f"cpu{ranks}"
        gpu = root / f"gpu{ranks}"
        train(ranks, cpu, TINY + STEPS + ["--device", "cpu"])
        train(ranks, gpu, TINY + STEPS + SHARED)
        worst = max(abs(a - b) for a, b in zip(losses(cpu), losses(gpu)))
        check(worst < 1e-4, f"{ranks} rank(s): losses on GPU and CPU differ by {worst}")


def check_strategies(root):
    reference = losses(root / "gpu2")
    for name, flags in {"overlap": ["--overlap", "off"], "bucketing": ["--bucketing", "off"],
                        "buckets": ["--bucket-mb", "0.05"], "pinned": ["--pin-memory", "off"],
                        "workers": ["--loader-workers", "0"]}.items():
        train(2, root / name, TINY + STEPS + SHARED + flags)
        check(losses(root / name) == reference, f"{name}: other losses than with everything on")
    train(2, root / "staged", TINY + STEPS + SHARED + ["--backend", "mpi"])
    check(losses(root / "staged") == reference, "two ranks: NCCL and host sums differ")


def check_resume(root):
    flags = TINY + STEPS + SHARED + ["--checkpoint-every", "10"]
    train(1, root / "whole", flags)
    train(1, root / "halves", flags[:-2] + ["--checkpoint-every", "10", "--resume", f"{root}/whole/checkpoints/step_00000010"])
    check(losses(root / "halves") == losses(root / "whole")[10:], "a resumed run has other losses")


def main():
    with workspace() as name:
        root = pathlib.Path(name)
        check_against_cpu(root)
        check_strategies(root)
        check_resume(root)
        output = train(1, root / "bf16", TINY + STEPS + ["--device", "cuda", "--precision", "bf16"])
        check("attention runs LibTorch's" in output, "the kernel of attention is not named\n" + output)


if __name__ == "__main__":
    main()
