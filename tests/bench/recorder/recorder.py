"""What recording costs: a range in nanoseconds, a step of gpt2-mini with the recorder on and off, and with the profiler's
window; and whether recorder and Nsight Systems measure the same steps.

    build/env/bin/python tests/bench/recorder/recorder.py [--repeats 5] [--nsys] [--output FILE]

The recorder is measured inside one run that keeps every second step (--record alternate): a kept step is divided by the
mean of the steps before and after it, which the slow noise of a machine cancels out of. The profiler's window is in runs
of its own, in turn. Intervals are of the median, 95 %, by bootstrap at a fixed seed.
--nsys: two more runs a repeat, one under Nsight Systems (launch/nsys-collect fetches it) and one with the recorder; each
tool's step is divided by what the trainer's own clock says of the same step of the same run.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
WARMUP = 3
SAMPLES_A_SECOND = 10


def command(run_dir, args, steps, flags):
    return ["train", "--run-dir", run_dir, "--data", "synthetic", "--device", "cpu", "--model", args.model, "--sequence-length",
            args.sequence_length, "--batch-size-per-rank", args.batch_size, "--steps", WARMUP + steps, "--eval-every", 0,
            "--checkpoint-every", 0, "--log-every", 1, "--precision", args.precision, *flags]


def start(words):
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}\n{done.stdout}")


def under_mpi(args, run_dir, steps, flags):
    start([ROOT / "launch/run", "-np", args.ranks, "--build", args.build, "--", *command(run_dir, args, steps, flags)])


def step_times(run_dir):
    """Seconds by step, by the trainer's own clock; the first steps are left out."""
    lines = [json.loads(line) for line in open(f"{run_dir}/metrics.jsonl")]
    return {line["step"]: line["batch_cost_s"] for line in lines if line["step"] > WARMUP}


def alternating(args, flags):
    """Kept step over the mean of its neighbours, for every kept step of one run."""
    with tempfile.TemporaryDirectory() as folder:
        under_mpi(args, f"{folder}/run", args.steps, ["--record", "alternate", *flags])
        seconds = step_times(f"{folder}/run")
    return [time / ((seconds[step - 1] + seconds[step + 1]) / 2) for step, time in seconds.items()
            if step % 2 == 0 and step - 1 in seconds and step + 1 in seconds], statistics.median(seconds.values())


def step_s(args, flags):
    """Median step time of one short run."""
    with tempfile.TemporaryDirectory() as folder:
        under_mpi(args, f"{folder}/run", 12, flags)
        return statistics.median(step_times(f"{folder}/run").values())


def tool_over_trainer(args, tool):
    """A tool's length of each step over the trainer's own, of one run."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir, trace = f"{folder}/run", f"{folder}/run/trace"
        if tool == "nsys":
            trace = f"{folder}/nsys"
            start([ROOT / "launch/nsys-collect", "-np", args.ranks, "--steps", "all", "--output", trace, "--build", args.build,
                   "--", *command(run_dir, args, 12, [])])
        else:
            under_mpi(args, run_dir, 12, ["--record", "on"])
        start([args.build / "sidestream-trace", "report", trace, "--json", f"{folder}/report.json"])
        seconds = step_times(run_dir)
        return [step["window_ns"] * 1e-9 / seconds[step["step"]] for step in json.load(open(f"{folder}/report.json"))["steps"]
                if step["rank"] == 0 and step["step"] in seconds]


def interval(values):
    """95 % of the medians of values drawn again."""
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[-51]


def text_of(ratios):
    low, high = interval(ratios)
    return f"{statistics.median(ratios):.4f}x ({low:.4f} to {high:.4f}, {len(ratios)} ratios)"


def interleaved(sides, repeats):
    """Values by side; every other repeat runs the sides in the opposite order."""
    values = {name: [] for name in sides}
    for repeat in range(repeats):
        for name in list(sides) if repeat % 2 == 0 else reversed(list(sides)):
            values[name].append(sides[name]())
    return values


def cost_of_ranges(args):
    output = subprocess.run([args.build / "tests/bench/bench_ranges"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in output.splitlines()}


def parts_text(ranges, step):
    account_s, sampling_s = ranges["step_not_kept"] * 1e-9, ranges["sample"] * 1e-9
    return [f"A range that is kept costs {ranges['range_kept']:.0f} ns, an operation in flight {ranges['operation_kept']:.0f} ns; the "
            f"clock alone {2 * ranges['clock']:.0f} ns of each. What is always on (7 phases, 24 collectives, the account of the step) "
            f"costs {account_s * 1e6:.1f} us a step: {100 * account_s / step:.4f} % of {step * 1e3:.0f} ms. A sample of the system takes "
            f"{sampling_s * 1e6:.0f} us on a thread of its own: {100 * sampling_s * SAMPLES_A_SECOND:.2f} % of a core at "
            f"{SAMPLES_A_SECOND} Hz.", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2-mini")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--sequence-length", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100, help="of a run that keeps every second step")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nsys", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()

    recorded = interleaved({"record": lambda: alternating(args, []), "layers": lambda: alternating(args, ["--ranges", "layers"])},
                           args.repeats)
    windows = interleaved({"off": lambda: step_s(args, []), "profile": lambda: step_s(args, ["--profile", "wait=2,warmup=1,active=100"])},
                          args.repeats)
    step = statistics.median(median for _, median in recorded["record"])
    lines = [f"{machine.today_here()}, {args.ranks} ranks, {args.model}, {args.precision}, "
             f"B = {args.batch_size}, T = {args.sequence_length}, {args.repeats} interleaved repeats, step {step * 1e3:.0f} ms", "",
             *parts_text(cost_of_ranges(args), step), "| | step against off |", "|---|---|"]
    for name, title in {"record": "`--record on`", "layers": "`--record on --ranges layers`"}.items():
        lines.append(f"| {title} | {text_of([one for ratios, _ in recorded[name] for one in ratios])} |")
    lines.append("| `--profile` (every operator) | "
                 f"{text_of([one / other for one, other in zip(windows['profile'], windows['off'])])} |")
    if args.nsys:
        tools = interleaved({"recorder": lambda: tool_over_trainer(args, "recorder"), "nsys": lambda: tool_over_trainer(args, "nsys")},
                            args.repeats)
        medians = {name: statistics.median(one for run in runs for one in run) for name, runs in tools.items()}
        lines += ["", f"Length of a step by the tool over the trainer's own: recorder {medians['recorder']:.4f}, Nsight Systems "
                      f"{medians['nsys']:.4f}; recorder against Nsight Systems {medians['recorder'] / medians['nsys']:.4f}x."]
    print("\n".join(lines))
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
