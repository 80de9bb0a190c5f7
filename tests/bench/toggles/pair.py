"""Two settings of a training on CPU ranks side by side, in pairs that alternate: tokens per second, memory, and what the
memory plan says.

    build/env/bin/python tests/bench/toggles/pair.py --a "--zero 0" --b "--zero 1" [--repeats 5] [--only gpt2-124m-bf16] [--output FILE]

A figure is the median of the pairs with their range, a ratio that of the pairs' own ratios. Memory is the peak of the
proportional set sizes of all ranks, added.
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


def planned_mib(case, ranks, flags):
    """What --dry-run says of a rank's optimizer: its part of master weights and moments."""
    shape = training.shape_flags(case["model"], case["vocab"], case["length"], case["batch"], case["precision"])
    with tempfile.TemporaryDirectory() as folder:
        command = training.command(f"{folder}/run", ranks, ["--steps", training.WARMUP, *shape, *flags, "--dry-run"])
        text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = re.findall(r"^  (?:master weights|moments) +([0-9.]+) MiB", text, re.MULTILINE)
    return sum(map(float, found))


def row(name, flags, rounds, ranks):
    """rounds: for each pair and side (tokens/s, bytes)."""
    tokens = [interval([one[side][0] for one in rounds], "{:.0f}") for side in (0, 1)]
    mib = [interval([one[side][1] / 2**20 for one in rounds], "{:.0f}") for side in (0, 1)]
    planned = [planned_mib(training.CASES[name], ranks, side) for side in flags]
    return (f"| {name} | {tokens[0]} | {tokens[1]} | {interval([b[0] / a[0] for a, b in rounds], unit='x')} | "
            f"{mib[0]} MiB | {mib[1]} MiB | {planned[0]:.0f} MiB | {planned[1]:.0f} MiB |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", default="", help="flags of one side, in one string")
    parser.add_argument("--b", required=True, help="flags of the other")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=training.CASES, nargs="*")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    flags = [args.a.split(), args.b.split()]
    only = f" --only {' '.join(args.only)}" if args.only else ""
    a, b = (f"`{side or 'default'}`" for side in (args.a, args.b))
    lines = [f"{machine.today_here()}, {args.ranks} ranks, medians of {args.repeats} interleaved pairs, with their range.",
             f'Command: `python tests/bench/toggles/pair.py --a "{args.a}" --b "{args.b}" --repeats {args.repeats}{only}`', "",
             f"| case | {a} tok/s | {b} tok/s | ratio | memory | memory | optimizer state of a rank, planned | planned |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name in args.only or training.CASES:
        rounds = []
        for repeat in range(args.repeats):
            order = (0, 1) if repeat % 2 == 0 else (1, 0)  # neither side always follows the other
            sides = {side: training.run_case(training.CASES[name], args.ranks, flags[side]) for side in order}
            rounds.append((sides[0], sides[1]))
            print(name, rounds[-1], file=sys.stderr, flush=True)
        lines.append(row(name, flags, rounds, args.ranks))
        print(lines[-1], flush=True)
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
