"""What each optimisation brings: every flag alone on top of --baseline, and all together, on CPU ranks.

    build/env/bin/python tests/bench/toggles/versus_baseline.py [--repeats 3] [--output FILE]

The variants run in turn, repeat by repeat; a ratio is the median over repeats of the baseline's step time over the
variant's in the same repeat, with the range of them.
"""

import argparse
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import machine  # noqa: E402
import training  # noqa: E402

VARIANTS = {
    "--baseline": ["--baseline"],
    "--baseline --shared-memory on": ["--baseline", "--shared-memory", "on"],
    "--baseline --bucketing on": ["--baseline", "--bucketing", "on"],
    "--baseline --overlap on": ["--baseline", "--overlap", "on"],
    "--baseline --fused-optimizer on": ["--baseline", "--fused-optimizer", "on"],
    "--baseline --zero 1 (with what it needs)": ["--baseline", "--zero", "1"],
    "--baseline --fused-ops on": ["--baseline", "--fused-ops", "on"],
    "--baseline --fused-ops on --gradient-as-bucket-view on": ["--baseline", "--fused-ops", "on", "--gradient-as-bucket-view", "on"],
    "--baseline --loader-workers 1 --prefetch 2": ["--baseline", "--loader-workers", "1", "--prefetch", "2"],
    "--baseline --precision bf16": ["--baseline", "--precision", "bf16"],
    "all, fp32": ["--precision", "fp32"],
    "all, bf16": ["--precision", "bf16"],
}
WARMUP = 3


def run(flags, args):
    shape = ["--model", args.model, "--sequence-length", args.sequence_length, "--batch-size-per-rank", args.batch_size]
    return training.timed(args.ranks, WARMUP, args.steps, [*shape, *flags])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2-mini")
    parser.add_argument("--sequence-length", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    times = {name: [] for name in VARIANTS}
    for _ in range(args.repeats):
        for name, flags in VARIANTS.items():
            times[name].append(run(flags, args))
    lines = [f"{machine.today_here()}, {args.ranks} ranks, {args.model}, B = "
             f"{args.batch_size}, T = {args.sequence_length}, medians of {args.repeats} interleaved repeats.",
             f"Command: `python tests/bench/toggles/versus_baseline.py --repeats {args.repeats}`", "",
             "| flags | step, ms | against --baseline |", "|---|--:|--:|"]
    base = times["--baseline"]
    for name, steps in times.items():
        ratios = [b / s for b, s in zip(base, steps)]
        lines.append(f"| `{name}` | {statistics.median(steps) * 1e3:.0f} | {statistics.median(ratios):.2f}x "
                     f"({min(ratios):.2f} to {max(ratios):.2f}) |")
    print("\n".join(lines))
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
