"""What is planned before a run starts against what it took: `memory` of run.json."""

import json
import pathlib

from support import train, undisturbed, workspace

# Large enough that the programs' own memory does not hide the rest.
MINI = ["--model", "gpt2-mini", "--data", "synthetic", "--steps", "4", "--threads", "1", "--sequence-length", "256", "--eval-every", "0"]
# Seen: 0.98 to 1.05 with nothing beside it, which it needs: pages of libraries count in parts, and other programs that use them end.
FURTHEST = 0.08
CASES = {
    "fp32": (1, ["--batch-size-per-rank", "8"]),
    "bf16": (1, ["--batch-size-per-rank", "16", "--precision", "bf16"]),
    "recomputed": (1, ["--batch-size-per-rank", "16", "--recompute", "blocks"]),
    "saves at the end": (1, ["--batch-size-per-rank", "8", "--checkpoint-every", "100"]),
    "saves between steps": (1, ["--batch-size-per-rank", "8", "--checkpoint-every", "2"]),
    "one copy of the state": (2, ["--batch-size-per-rank", "8", "--precision", "bf16"]),
    "each its state": (2, ["--batch-size-per-rank", "8", "--precision", "bf16", "--zero", "0"]),
}


def ratio_of(run_dir, ranks, flags):
    train(ranks, run_dir, [*MINI, *flags])
    return json.loads((run_dir / "run.json").read_text())["memory"]["measured_over_planned"]


def main():
    with workspace() as folder:
        for name, (ranks, flags) in CASES.items():
            def attempt(number, name=name, ranks=ranks, flags=flags):
                """A peak that falls between two looks at the memory is seen late, which other work of the machine makes more of."""
                ratio = ratio_of(pathlib.Path(folder) / f"{name.replace(' ', '-')}-{number}", ranks, flags)
                print(f"{name}: {ratio:.3f} of the plan", flush=True)
                return None if abs(ratio - 1) <= FURTHEST else f"{ratio:.3f} of the plan"

            undisturbed(f"memory, {name}", attempt)


main()
