"""What recording costs: a range in nanoseconds, a step of gpt2-mini with the recorder on and off, and with the profiler's
window; and whether recorder and Nsight Systems measure the same steps.

    build/env/bin/python tests/bench/recorder/recorder.py [--repeats 5] [--nsys] [--output FILE]

The sides run in turn, repeat by repeat, and swap places; a ratio is the median over repeats of the ratio within a repeat.
--nsys: two more runs a repeat, one under Nsight Systems (launch/nsys-collect fetches it) and one with the recorder.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
WARMUP = 3


def command(run_dir, args, flags):
    return ["train", "--run-dir", run_dir, "--data", "synthetic", "--device", "cpu", "--model", args.model, "--sequence-length",
            args.sequence_length, "--batch-size-per-rank", args.batch_size, "--steps", WARMUP + args.steps, "--eval-every", 0,
            "--precision", args.precision, *flags]


def start(words):
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}\n{done.stdout}")


def step_s(args, flags):
    """Median step time of one run."""
    with tempfile.TemporaryDirectory() as folder:
        start([ROOT / "launch/run", "-np", args.ranks, "--build", args.build, "--", *command(f"{folder}/run", args, flags)])
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        return statistics.median(line["batch_cost_s"] for line in lines[WARMUP:])


def reported_step_ms(args, trace):
    """The median step that sidestream-trace reads out of a recording."""
    with tempfile.TemporaryDirectory() as folder:
        start([args.build / "sidestream-trace", "report", trace, "--json", f"{folder}/report.json"])
        steps = json.load(open(f"{folder}/report.json"))["steps"]
    return statistics.median(step["window_ns"] for step in steps if step["step"] > WARMUP) * 1e-6


def nsys_step_ms(args):
    with tempfile.TemporaryDirectory() as folder:
        start([ROOT / "launch/nsys-collect", "-np", args.ranks, "--steps", "all", "--output", f"{folder}/nsys", "--build", args.build,
               "--", *command(f"{folder}/run", args, [])])
        return reported_step_ms(args, f"{folder}/nsys")


def recorder_step_ms(args):
    with tempfile.TemporaryDirectory() as folder:
        start([ROOT / "launch/run", "-np", args.ranks, "--build", args.build, "--",
               *command(f"{folder}/run", args, ["--record", "on"])])
        return reported_step_ms(args, f"{folder}/run/trace")


def interleaved(sides, repeats):
    """Values by side; every other repeat runs the sides in the opposite order."""
    values = {name: [] for name in sides}
    for repeat in range(repeats):
        for name in list(sides) if repeat % 2 == 0 else reversed(list(sides)):
            values[name].append(sides[name]())
    return values


def ratio(values, name, base):
    return statistics.median(one / other for one, other in zip(values[name], values[base]))


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def cost_of_ranges(args):
    output = subprocess.run([args.build / "tests/bench/bench_ranges"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in output.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2-mini")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--sequence-length", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nsys", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()

    sides = {"off": lambda: step_s(args, []),
             "record": lambda: step_s(args, ["--record", "on", "--sample-hz", "10"]),
             "layers": lambda: step_s(args, ["--record", "on", "--ranges", "layers"]),
             "profile": lambda: step_s(args, ["--profile", "wait=2,warmup=1,active=100"])}
    ranges = cost_of_ranges(args)
    steps = interleaved(sides, args.repeats)
    off_ms = statistics.median(steps["off"]) * 1e3
    account_ms = ranges["step_not_kept"] * 1e-6
    lines = [f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, {args.ranks} ranks, {args.model}, {args.precision}, "
             f"B = {args.batch_size}, T = {args.sequence_length}, {args.repeats} interleaved repeats", "",
             f"A range that is kept costs {ranges['range_kept']:.0f} ns, an operation in flight {ranges['operation_kept']:.0f} ns; the "
             f"clock alone {2 * ranges['clock']:.0f} ns of each. What is always on (7 phases, 24 collectives, the account of the step) "
             f"costs {account_ms * 1e3:.1f} us a step: {100 * account_ms / off_ms:.4f} % of {off_ms:.0f} ms.", "",
             "| | step, ms | against off |", "|---|--:|--:|"]
    names = {"off": "`--record off`", "record": "`--record on --sample-hz 10`", "layers": "`--record on --ranges layers`",
             "profile": "`--profile` (every operator)"}
    for name, text in names.items():
        lines.append(f"| {text} | {statistics.median(steps[name]) * 1e3:.1f} | {ratio(steps, name, 'off'):.4f}x |")
    if args.nsys:
        both = interleaved({"nsys": lambda: nsys_step_ms(args), "recorder": lambda: recorder_step_ms(args)}, args.repeats)
        lines += ["", f"Median step, recorder against Nsight Systems, runs in turn: {statistics.median(both['recorder']):.1f} ms and "
                      f"{statistics.median(both['nsys']):.1f} ms, {ratio(both, 'recorder', 'nsys'):.4f}x."]
    print("\n".join(lines))
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
