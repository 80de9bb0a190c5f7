"""Levels of --recompute, interleaved, on CPU ranks: speed, and the peak of all ranks' memory.

    build/env/bin/python tests/bench/toggles/recompute.py [--flags "--dropout 0.1"] [--repeats 3] [--only gpt2-mini-bf16] [--output FILE]

A figure is the median over repeats with their range, a ratio that of the level's tokens per second over those of `none` in the same
repeat. Memory is the peak of the proportional set sizes of all ranks, added; planned is what --dry-run says of a rank's
activations: what blocks keep, and the larger of logits and one block.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
import training  # noqa: E402
from spread import interval  # noqa: E402

LEVELS = ("none", "activations", "mlp", "attention", "blocks")


def planned_mib(case, ranks, flags):
    """What blocks keep, and what is on top of that at the peak."""
    shape = training.shape_flags(case["model"], case["vocab"], case["length"], case["batch"], case["precision"])
    with tempfile.TemporaryDirectory() as folder:
        command = training.command(f"{folder}/run", ranks, ["--steps", training.WARMUP, *shape, *flags, "--dry-run"])
        text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    size = {name: float(re.search(rf"^  {name} +([0-9.]+) MiB", text, re.MULTILINE)[1]) for name in ("activations", "logits", "one block")}
    return size["activations"], max(size["logits"], size["one block"])


def rows(name, rounds, ranks, flags):
    """rounds: for each repeat and level (tokens/s, bytes)."""
    for level in LEVELS:
        against = interval([one[level][0] / one["none"][0] for one in rounds], unit="x")
        tokens = interval([one[level][0] for one in rounds], "{:.0f}")
        mib = interval([one[level][1] / 2**20 for one in rounds], "{:.0f}")
        kept, above = planned_mib(training.CASES[name], ranks, [*flags, "--recompute", level])
        yield f"| {name} | `{level}` | {tokens} | {against} | {mib} MiB | {kept:.0f} MiB + {above:.0f} MiB |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flags", default="", help="of all levels, in one string")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=training.CASES, nargs="*")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    flags = args.flags.split()
    given = (f' --flags "{args.flags}"' if flags else "") + (f" --only {' '.join(args.only)}" if args.only else "")
    lines = [f"{machine.today_here()}, {args.ranks} ranks, medians of {args.repeats} interleaved repeats, with their range.",
             f"Command: `python tests/bench/toggles/recompute.py --repeats {args.repeats}{given}`", "",
             "| case | `--recompute` | tok/s | against none | memory of all ranks | activations of a rank, planned: kept + at the peak |",
             "|---|---|--:|--:|--:|--:|"]
    for name in args.only or training.CASES:
        rounds = []
        for repeat in range(args.repeats):
            order = LEVELS if repeat % 2 == 0 else LEVELS[::-1]  # no level always follows the same one
            rounds.append({level: training.run_case(training.CASES[name], args.ranks, [*flags, "--recompute", level]) for level in order})
            print(name, rounds[-1], file=sys.stderr, flush=True)
        lines += rows(name, rounds, args.ranks, flags)
        print("\n".join(lines[-len(LEVELS):]), flush=True)
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
