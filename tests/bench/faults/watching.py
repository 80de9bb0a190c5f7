"""What it costs to watch a run all the time: recorder, watchdog and the comparison of replicas.

Inside one run every second step is recorded and followed by a comparison; its length is divided by the mean of the steps before and
after it, which the slow noise of a machine cancels out of. A second run records every second step and compares nothing. The watchdog
cannot be switched off: the processor time of its thread is what it can cost at most.
"""
import pathlib
import random
import statistics
import struct
import subprocess
import tempfile
import time

from trainings import command, environment, train

WARM_UP = 4
MODEL = ["--model", "gpt2-mini", "--precision", "bf16", "--sequence-length", 256, "--batch-size-per-rank", 4, "--checkpoint-every", 0,
         "--zero", 0]  # with one copy of the state on a node there is nothing to compare


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def wall_times(run_dir):
    """Time of day when a step was reported, by step: from the TensorBoard file, whose events say so."""
    data = next(pathlib.Path(run_dir).glob("events.out.tfevents.*")).read_bytes()
    times, at = {}, 0
    while at + 12 <= len(data):
        length, = struct.unpack_from("<Q", data, at)
        event = data[at + 12:at + 12 + length]
        at += 12 + length + 4
        if event[:1] == b"\x09" and event[9:10] == b"\x10":
            step, _ = varint(event, 10)
            times[step] = struct.unpack_from("<d", event, 1)[0]
    return times


def ratios(args, flags):
    """Of every second step over its neighbours; and the median step in seconds."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        train(args, f"{folder}/run", [*MODEL, "--steps", args.steps, "--record", "alternate", *flags])
        times = wall_times(f"{folder}/run")
    lengths = {step: times[step] - times[step - 1] for step in times if step > WARM_UP and step - 1 in times}
    pairs = [lengths[step] / ((lengths[step - 1] + lengths[step + 1]) / 2) for step in lengths
             if step % 2 == 0 and step - 1 in lengths and step + 1 in lengths]
    return pairs, statistics.median(lengths[step] for step in lengths if step % 2)


def watchdog_share(args):
    """Processor time of the watchdog's thread over time, of the ranks of one run."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        process = subprocess.Popen(command(args, f"{folder}/run", [*MODEL, "--steps", 40]), env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begin, used = {}, {}
        while process.poll() is None:
            for file in pathlib.Path("/proc").glob("[0-9]*/task/*/comm"):
                try:
                    if file.read_text() == "ss-watchdog\n":
                        ran_ns = int((file.parent / "schedstat").read_text().split()[0])
                        begin.setdefault(file, (time.monotonic(), ran_ns))
                        used[file] = (time.monotonic(), ran_ns)
                except OSError:
                    continue
            time.sleep(0.5)
    return max((used[file][1] - ran) * 1e-9 / (used[file][0] - at) for file, (at, ran) in begin.items() if used[file][0] > at)


def interval(values):
    """95 % of the medians of values drawn again."""
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[-51]


def section(args):
    recorded, compared, steps = [], [], []
    for _ in range(args.repeats):
        for values, flags in ((recorded, []), (compared, ["--drift-every", 2])):
            pairs, step = ratios(args, flags)
            values += pairs
            steps.append(step)
    step = statistics.median(steps)
    watchdog = watchdog_share(args)
    lines = ["## Watching a run all the time", "",
             f"gpt2-mini, bf16, B = 4, T = 256, `--zero 0`, step {1e3 * step:.0f} ms. Steps with against their neighbours without; intervals are "
             "of the median, 95 %.", "", "| in every second step | step |", "|---|---|"]
    for title, values in (("`--record on`", recorded), ("`--record on` and a comparison of the replicas", compared)):
        low, high = interval(values)
        lines.append(f"| {title} | {statistics.median(values):.4f}x ({low:.4f} to {high:.4f}, {len(values)} ratios) |")
    record, check = statistics.median(recorded) - 1, statistics.median(compared) - statistics.median(recorded)
    record_high, check_high = interval(recorded)[1] - 1, interval(compared)[1] - interval(recorded)[0]
    lines += ["", f"The watchdog's thread takes {100 * watchdog:.4f} % of a processor. A comparison takes {1e3 * check * step:.1f} ms.", ""]
    for every in (100, 1000):
        together = max(0, record) + watchdog + max(0, check) / every
        high = max(0, record_high) + watchdog + max(0, check_high) / every
        default = " (the default)" if every == 1000 else ""
        lines.append(f"Together, with `--drift-every {every}`{default}: {100 * together:.2f} % of the step ({100 * high:.2f} % at the upper ends of the intervals).")
    return lines
