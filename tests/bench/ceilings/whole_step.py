"""How much of what the cores can multiply a whole training step uses: 6 x parameters x tokens, over its time, over the measured
ceiling of the precision.

    build/env/bin/python tests/bench/ceilings/whole_step.py [--repeats 3] [--only gpt2-124m-bf16] [--output FILE]

One rank a core. `bench ceilings` and the trainings run in turn, each repeat is one round; a share is the median and the
range of the rounds' own. The ceiling is the better of our products and LibTorch's, of shapes like a model's, on all cores.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
import training  # noqa: E402

WARMUP = 2
MODELS = {"gpt2-mini": dict(vocabulary=512, length=256, batch_per_rank=16, steps=6),
          "gpt2-124m": dict(vocabulary=50257, length=256, batch_per_rank=8, steps=3)}
CASES = {f"{model}-{precision}": (model, precision) for model in MODELS for precision in ("fp32", "bf16")}


def ceilings(seconds):
    """FLOP per second of all cores, by precision."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "build/release/sidestream", "bench", "ceilings", "--seconds", str(seconds)], check=True,
                       env=os.environ | {"XDG_CACHE_HOME": folder}, stdout=subprocess.DEVNULL)
        machines = json.loads((pathlib.Path(folder) / "sidestream/ceilings.json").read_text(encoding="utf-8"))["machines"]
    figures = next(iter(machines.values()))
    return {precision: figures[f"{precision}_flops_per_s"] for precision in ("fp32", "bf16")}


def rate(name, ranks, flags):
    """Tokens per second, and FLOP per second by 6 N."""
    model, precision = CASES[name]
    shape = dict(MODELS[model])
    steps = shape.pop("steps")
    step_s, record = training.timed(ranks, WARMUP, steps, [*training.shape_flags(model, precision=precision, **shape), *flags])
    tokens_per_s = ranks * shape["batch_per_rank"] * shape["length"] / step_s
    return tokens_per_s, 6 * record["parameters"] * tokens_per_s


def spread(values, pattern):
    return f"{pattern % statistics.median(values)} ({pattern % min(values)} to {pattern % max(values)})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a measurement of the ceilings")
    parser.add_argument("--only", choices=CASES, nargs="*")
    parser.add_argument("--flags", default="", help="further flags of the trainings, in one string")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    ranks = os.cpu_count()
    names = args.only or list(CASES)
    rounds = []
    for _ in range(args.repeats):
        one = {"ceilings": ceilings(args.seconds), **{name: rate(name, ranks, args.flags.split()) for name in names}}
        rounds.append(one)
        print(one, file=sys.stderr, flush=True)
    only = f" --only {' '.join(args.only)}" if args.only else ""
    lines = [f"{machine.today_here()}, {ranks} ranks, medians of {args.repeats} interleaved repeats.",
             f"Command: `python tests/bench/ceilings/whole_step.py --repeats {args.repeats}{only}`", "",
             "| case | B of a rank | T | tok/s | 6 N, GFLOP/s | measured ceiling, GFLOP/s | share |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name in names:
        model, precision = CASES[name]
        shares = [100 * one[name][1] / one["ceilings"][precision] for one in rounds]
        lines.append(f"| {name} | {MODELS[model]['batch_per_rank']} | {MODELS[model]['length']} | "
                     f"{statistics.median(one[name][0] for one in rounds):.0f} | {statistics.median(one[name][1] for one in rounds) * 1e-9:.0f} | "
                     f"{statistics.median(one['ceilings'][precision] for one in rounds) * 1e-9:.0f} | {spread(shares, '%.0f %%')} |")
    print("\n".join(lines))
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
