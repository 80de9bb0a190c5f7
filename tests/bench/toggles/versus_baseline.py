"""What each optimisation brings: every flag alone on top of --baseline, and all together, on CPU ranks.

    build/env/bin/python tests/bench/toggles/versus_baseline.py [--repeats 3] [--output FILE]

The variants run in turn, repeat by repeat; a step is the median over repeats, a ratio the median over repeats of the step time of
--baseline, or of the other variant that it needs, over the variant's in the same repeat, each with the range of the repeats.
Where every second step is saved, a step counts its share of the time that training waited for saves.
"""

import argparse
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
import training  # noqa: E402
from spread import interval, ratios  # noqa: E402

# Flags on top of --baseline, and the variant that they are measured against, where that is not --baseline itself.
FUSED_OPS, FUSED_OPTIMIZER, BUCKETING, BF16, SAVING = ("--fused-ops on", "--fused-optimizer on", "--bucketing on", "--precision bf16",
                                                       "--checkpoint-every 2")
ON_BASELINE = {
    "": "",
    "--shared-memory on": "",
    BUCKETING: "",
    "--overlap on": "",
    FUSED_OPTIMIZER: "",
    "--zero 1": "",
    FUSED_OPS: "",
    f"{FUSED_OPS} --gradient-as-bucket-view on": FUSED_OPS,
    f"{FUSED_OPS} --loss-chunks 4": FUSED_OPS,
    f"{FUSED_OPS} --recompute mlp": FUSED_OPS,
    f"{FUSED_OPS} --recompute blocks": FUSED_OPS,
    f"{FUSED_OPTIMIZER} --optimizer-state-dtype bf16": FUSED_OPTIMIZER,
    f"{BUCKETING} --reduce-dtype bf16": BUCKETING,
    "--flush-denormals on": "",
    "--pin-threads on": "",
    "--huge-pages on": "",
    "--keep-memory on": "",
    "--loader-workers 1 --prefetch 2": "",
    BF16: "",
    f"{BF16} --reduce-dtype fp32": BF16,
    SAVING: "",
    f"{SAVING} --async-checkpoints on": SAVING,
}
VARIANTS = {f"--baseline {flags}".strip(): f"--baseline {against}".strip() for flags, against in ON_BASELINE.items()}
VARIANTS |= {"--precision fp32": "--baseline", "--precision bf16": "--baseline"}
WARMUP = 3


def run(flags, args):
    """Seconds of a step."""
    shape = ["--model", args.model, "--sequence-length", args.sequence_length, "--batch-size-per-rank", args.batch_size]
    step_s, record = training.timed(args.ranks, WARMUP, args.steps, [*shape, *flags])
    if "--checkpoint-every" not in flags:
        return step_s
    return step_s + record["ettr_account"]["checkpoint_stall_s"] / (WARMUP + args.steps)


def line(variant, times):
    against = VARIANTS[variant]
    other = "" if against == "--baseline" else f", against `{against}`"
    return (f"| `{variant}` | {interval([1e3 * step for step in times[variant]], '{:.0f}')} | "
            f"{interval(ratios(times[against], times[variant]), unit='x')}{other} |")


def chosen(only):
    """What is asked for, and what that is measured against; in the order of the table."""
    needed = set(only or VARIANTS)
    needed |= {VARIANTS[name] for name in needed} | {"--baseline"}
    return [name for name in VARIANTS if name in needed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2-mini")
    parser.add_argument("--sequence-length", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=VARIANTS, nargs="*", metavar="'FLAGS'", help="such rows of the table")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    names = chosen(args.only)
    times = {name: [] for name in names}
    for _ in range(args.repeats):
        for name in names:
            times[name].append(run(name.split(), args))
            print(f"{name}: {times[name][-1]:.3f} s", file=sys.stderr, flush=True)
    lines = [f"{machine.today_here()}, {args.ranks} ranks, {args.model}, B = "
             f"{args.batch_size}, T = {args.sequence_length}, medians of {args.repeats} interleaved repeats, with their range.",
             f"Command: `{shlex.join(['python', 'tests/bench/toggles/versus_baseline.py', *sys.argv[1:]])}`", "",
             "| flags | step, ms | against `--baseline` |", "|---|--:|--:|", *(line(name, times) for name in names)]
    print("\n".join(lines))
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
