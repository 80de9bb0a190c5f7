"""Every fault that the advice knows, live: planted in a training of two CPU ranks, profiled, found by the right rule and by no
other, and the fix measured against the bound that the rule gave.

    build/env/bin/python tests/soak/faults.py [--only WORDS ...] [--pairs N] [--wait-minutes N]
    build/env/bin/python tests/soak/faults.py --recordings tests/data/traces/faults [--only WORDS ...]

An hour on two cores; the result is tests/soak/faults.md: of a whole run, or with --only those rows of it again, each with its time. A
fault has to cost 20 % of a step or more: what costs less proves nothing about its rule. --recordings keeps short traces instead of
measuring. Where a machine is shared, ranks are late at random: a trace with a wrong finding is taken again, up to three times, and what
other programs took of the processors meanwhile stands beside it. Waiting for a rank is held against the rules only where they took less
than a tenth.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch/training"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
import cables  # noqa: E402
from fault_list import ELSEWHERE, FAULTS, RANKS, Fault  # noqa: E402
from machine import processor  # noqa: E402
from support import BINARY, BUILD, ROOT, environment, mpirun  # noqa: E402

TRACE = BUILD / "sidestream-trace"
RESULT = ROOT / "tests/soak/faults.md"
SLEEPING = BUILD / "tests/launch/recording/sidestream_slow_rank"  # the trainer, with a sleep where SIDESTREAM_TEST_SLEEP says
TIMEOUT_S, ATTEMPTS = 600, 3
# The trainer compares with the steps before the window, without the first three.
WINDOW, WINDOW_STEPS = ["--profile", "wait=11,warmup=1,active=6,repeat=1", "--profile-shapes"], 19
WORTH_SAYING_PCT, WARM_UP = 3, 5
LEAST_COST = 0.2  # of a step
FEWEST_PAIRS = 6
BUSY = 0.1  # share of the processors that others may take before a late rank is theirs
WAITING = ("straggler", "link-bound")  # what a late rank looks like
# Quantiles of Student's distribution for two-sided intervals of 95 and 99.9 %, by degrees of freedom.
T_95 = {5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
T_999 = {5: 6.869, 6: 5.959, 7: 5.408, 8: 5.041, 9: 4.781}


def call(words, env, expect=(0,)):
    done = subprocess.run([str(word) for word in words], env=env, text=True, errors="replace", timeout=TIMEOUT_S, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode not in expect:
        raise RuntimeError(f"exit code {done.returncode} from {' '.join(map(str, words))}\n{done.stdout}")
    return done.stdout


def start_words(fault, side, words):
    """mpirun with another command for the last rank, where it has flags of its own; over a cable where the fault has one."""
    if fault.rate:
        return cables.mpirun_on_hosts([1] * fault.ranks, words)
    if side != "faulty" or not fault.last_rank:
        return mpirun(fault.ranks, words)
    head = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(fault.ranks - 1)]
    flag, value = fault.last_rank
    other = [value if before == flag else word for before, word in zip([""] + words, words)]
    return [*head, *words, ":", "-np", "1", *other]


def train(folder, fault, side, more):
    shutil.rmtree(folder, ignore_errors=True)
    env, sleep = environment() | (cables.environment(fault.rate) if fault.rate else {}), fault.sleep if side == "faulty" else fault.fixed_sleep
    if sleep:
        env["SIDESTREAM_TEST_SLEEP"] = sleep
    if fault.last_rank:
        env["SIDESTREAM_FAULT_INJECTION"] = "1"  # else ranks with other settings are refused
    flags = fault.common + getattr(fault, side) + data_of(fault, side, folder.parent)
    fill = [word for name, value in (("--data", "synthetic"), ("--checkpoint-every", "0")) if name not in flags for word in (name, value)]
    program = str(SLEEPING if fault.sleep else BINARY)
    call(start_words(fault, side, [program, "train", *flags, *fill, "--log-every", "1", "--eval-every", "0", "--run-dir", str(folder), *more]), env)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def data_of(fault, side, folder):
    """Flags for the fault's own data: many shards, or the same tokens in one."""
    if not fault.data_files:
        return []
    import numpy
    shards, tokens, data = (fault.data_files, 2048, "many") if side == "faulty" else (1, 2048 * fault.data_files, "one")
    if not (folder / data).exists():
        (folder / data).mkdir()
        random = numpy.random.default_rng(1)
        for shard in range(shards + 1):  # the first one is for validation
            header = numpy.zeros(256, dtype=numpy.int32)
            header[:3] = 20240520, 1, tokens
            content = header.tobytes() + random.integers(0, 512, tokens, dtype=numpy.uint16).tobytes()
            (folder / data / f"{'train' if shard else 'val'}_{shard:06d}.bin").write_bytes(content)
    return ["--data", str(folder / data)]


def report(folder, fault, side, steps=WINDOW_STEPS, window=WINDOW):
    """The report.json of one recorded run."""
    train(folder, fault, side, ["--steps", str(steps), *window])
    call([TRACE, "report", folder, "--json", folder / "report.json", "--quiet"], environment())
    return json.loads((folder / "report.json").read_text())


class OthersWatch:
    """What other programs take of the processors while we work."""

    def __init__(self):
        self.began = self.now()

    @staticmethod
    def now():
        busy = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle, waiting = busy[3], busy[4]
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (sum(busy) - idle - waiting) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime, sum(busy) / os.sysconf("SC_CLK_TCK")

    def share(self):
        busy, own, capacity = (now - then for now, then in zip(self.now(), self.began))
        return max(0.0, (busy - own) / capacity) if capacity > 0 else 0.0


def wait_for_quiet(minutes):
    """Until others leave most of the processors alone, or the time is up. Starved ranks show other faults than the planted one."""
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline:
        watch = OthersWatch()
        time.sleep(2)
        if watch.share() < BUSY:
            return


def bound_text(one):
    return "–" if one["gain_ceiling_pct"] is None else f"{one['gain_ceiling_pct']:.1f} %"


def wrong_findings(advice, fault):
    """What speaks above 3 %, or without a bound, although it should not."""
    silent = {fault.rule, *fault.follows}
    return [one for one in advice if one["rule"] not in silent and (one["gain_ceiling_pct"] is None or one["gain_ceiling_pct"] > WORTH_SAYING_PCT)]


def findings(folder, fault):
    """(what the rule said or None, wrong findings as text, whether that is right) of the best of some attempts."""
    for attempt in range(1, ATTEMPTS + 1):
        watch = OthersWatch()
        found = report(folder / "profiled", fault, "faulty")
        others = watch.share()
        right = next((one for one in found["advice"] if one["rule"] == fault.rule), None)
        wrong = wrong_findings(found["advice"], fault)
        if (right or not fault.rule) and not wrong:
            return right, "none" if attempt == 1 else f"none, in attempt {attempt}", True
    text = ", ".join(f"{one['rule']} {bound_text(one)}" for one in wrong)
    late_by_others = others > BUSY and all(one["rule"] in WAITING for one in wrong)
    return right, f"{text} (others took {others * 100:.0f} % of the processors)" if text else "none", not wrong or late_by_others


def step_of(folder, fault, side):
    """A typical step of one run, in seconds."""
    if fault.period:
        found = report(folder, fault, side, steps=18, window=["--record", "on"])
        starts = [step["start_ns"] for step in found["steps"] if step["rank"] == 0][WARM_UP:]
        return statistics.median(after - before for before, after in zip(starts, starts[1:])) * 1e-9
    train(folder, fault, side, ["--steps", "18"])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["batch_cost_s"] for line in lines[WARM_UP:])


def measured_gain(folder, fault, pairs):
    """Share of the step that the fix saves: (estimate, low and high of 95 %, low of 99.9 %). Runs in pairs, sides in turns."""
    ratios = []
    for pair in range(pairs):
        times = {}
        for side in ("faulty", "fixed") if pair % 2 == 0 else ("fixed", "faulty"):
            times[side] = step_of(folder / "timed", fault, side)
        ratios.append(math.log(times["fixed"] / times["faulty"]))
    middle, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(pairs)
    at = [middle, middle + T_95[pairs - 1] * error, middle - T_95[pairs - 1] * error, middle + T_999[pairs - 1] * error]
    return tuple(1 - math.exp(value) for value in at)


def prepare_denormals(fault, folder):
    """A checkpoint whose MLP weights are denormal, for both sides to start from; a learning rate of 0 leaves them so."""
    import safetensors.numpy
    start = folder / "start"
    plain = Fault("start", "", fault.common)
    flags = ["--data", "synthetic", "--log-every", "0", "--eval-every", "0", "--checkpoint-every", "0", "--steps", "0"]
    call([BINARY, "train", *plain.common, *flags, "--run-dir", start], environment())
    checkpoint = sorted((start / "checkpoints").glob("step_*"))[-1]
    file = checkpoint / "model.safetensors"
    tensors = safetensors.numpy.load_file(file)
    for name, values in tensors.items():
        if ".mlp." in name and values.ndim == 2:
            tensors[name] = (values * 0 + 1e-40).astype(values.dtype)
    weights = folder / "denormal"
    shutil.copytree(checkpoint, weights, ignore=shutil.ignore_patterns("manifest.json", "optimizer*"))  # as others publish weights
    safetensors.numpy.save_file(tensors, weights / "model.safetensors", metadata={"format": "pt"})
    fault.common = fault.common + ["--init", str(weights), "--lr", "0", "--min-lr-ratio", "0", "--fused-ops", "off"]


def verdict(gain, bound):
    if bound is None:
        return "NO: no bound given"
    estimate, _, _, least = gain
    if estimate * 100 <= bound:
        return "yes"
    return "yes, within the 99.9 % interval" if least * 100 <= bound else "NO"


def row_of(fault, folder, pairs):
    right, others, good = findings(folder, fault)
    name = fault.name + (f" ({fault.note})" if fault.note else "")
    if not fault.rule:
        return [name, "–", "–", others, "–", "–"], good
    if right is None:
        return [name, f"{fault.rule}: NOT FOUND", "–", others, "–", "–"], False
    if pairs == 0:
        return [name, fault.rule, bound_text(right), others, "not measured", "–"], good
    watch = OthersWatch()
    gain = measured_gain(folder, fault, pairs)
    taken = watch.share()
    bound = right["gain_ceiling_pct"]
    holds = verdict(gain, bound)
    text = f"{gain[0] * 100:.1f} % ({gain[1] * 100:.1f} to {gain[2] * 100:.1f} %)"
    if taken > BUSY and not fault.rate:  # ranks of other hosts are no children of ours, and count as others
        text += f", others took {taken * 100:.0f} % of the processors"
    costs_enough = gain[0] >= LEAST_COST or fault.costs_little
    if not costs_enough:
        text += f": COSTS LESS THAN {LEAST_COST * 100:.0f} %"
    return [name, fault.rule, bound_text(right), others, text, holds], good and holds.startswith("yes") and costs_enough


def table(rows, pairs, version):
    header = ["fault", "rule", "bound", "other findings above 3 %", "gain of the fix (95 % interval)", "bound holds", "measured"]
    lines = ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]]
    cores = len([line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("processor")])
    return (f"# Faults planted in live trainings\n\n{datetime.date.today()}, {cores} cores of {processor()}, {RANKS} CPU ranks, {pairs} pairs of runs each; "
            f"{version}. Made by `tests/soak/faults.py`.\n\n"
            "The bound is what the rule promises at most; the gain is measured, fix against fault in pairs. A gain may only lie above its bound\n"
            "within the 99.9 % interval of the measurement. Left out of the other findings is what follows from the fault itself (`follows` in\n"
            "fault_list.py). The last column: when, and with which commit.\n\n" + "\n".join(lines) + "\n")


def commit():
    """Of the sources, with a plus where they were changed since."""
    return subprocess.run(["git", "describe", "--always", "--dirty=+", "--abbrev=7"], cwd=ROOT, capture_output=True, text=True,
                          check=False).stdout.strip()


def kept_rows():
    """Of faults.md by fault, as long as it is of this processor."""
    lines = RESULT.read_text().splitlines() if RESULT.exists() else []
    if not any(processor() in line for line in lines[:3]):
        return {}
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("| ")]
    return {fault_in(row[0]): row for row in cells[2:]}


def fault_in(cell):
    return cell.split(" (")[0]


def write_table(rows, pairs):
    """The new rows among those that were measured before, in the order of the list."""
    known = kept_rows() | {fault_in(row[0]): row for row in rows}
    measured = [known[fault.name] for fault in FAULTS if fault.name in known and not fault.impossible]
    elsewhere = [[name, rule, "–", "–", text, "–", "–"] for name, rule, text in ELSEWHERE]
    version = call([TRACE, "--version"], environment()).strip()
    RESULT.write_text(table(measured + elsewhere, pairs, version))


def record_faults(wanted):
    """Keeps a short trace of every fault; exit code 1 when one could not be shown alone."""
    import fault_recordings
    good = True
    with tempfile.TemporaryDirectory(prefix="sidestream-faults-") as scratch:
        measure_ceilings(pathlib.Path(scratch) / "cache")
        for number, fault in enumerate(chosen(wanted.only)):
            folder = pathlib.Path(scratch) / str(number)
            folder.mkdir()
            prepare(fault, folder)
            wait_for_quiet(wanted.wait_minutes)
            good = fault_recordings.record(fault, report, wrong_findings, folder, wanted.recordings) and good
    sys.exit(0 if good else 1)


def measure_ceilings(cache):
    """What this machine can do, for the rules that compare with it, and for nobody else."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    call([BINARY, "bench", "ceilings"], environment())


def chosen(words):
    return [fault for fault in FAULTS if not fault.impossible and (not words or any(word in fault.name for word in words))]


def prepare(fault, folder):
    if fault.name == "denormals":
        prepare_denormals(fault, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[], help="faults whose name has one of these words: their rows are measured again")
    parser.add_argument("--pairs", type=int, default=6, choices=[0, *range(FEWEST_PAIRS, 11)],
                        help="of runs for each gain; 0: only what is found. Of fewer the 99.9 %% interval is too wide for any bound to fail")
    parser.add_argument("--wait-minutes", type=float, default=5, help="for a quiet machine, before each fault")
    parser.add_argument("--recordings", type=pathlib.Path, help="keep a short trace of each fault here, and measure nothing")
    wanted = parser.parse_args()
    if wanted.recordings:
        record_faults(wanted)
    rows, good = [], True
    with tempfile.TemporaryDirectory(prefix="sidestream-faults-") as scratch:
        measure_ceilings(pathlib.Path(scratch) / "cache")
        for number, fault in enumerate(chosen(wanted.only)):
            folder = pathlib.Path(scratch) / str(number)
            folder.mkdir()
            prepare(fault, folder)
            wait_for_quiet(wanted.wait_minutes)
            row, right = row_of(fault, folder, wanted.pairs)
            shutil.rmtree(folder)
            rows.append([*row, f"{datetime.datetime.now():%m-%d %H:%M}, {commit()}"])
            good = good and right
            print(" | ".join(row), flush=True)
    if wanted.pairs:
        write_table(rows, wanted.pairs)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
