"""What a run writes about itself into its traces, as `sidestream-trace report` shows it: MFU by both formulas, what the
profiler cost."""

import gzip
import json
import os
import re
import statistics
import subprocess
import sys

from support import BINARY, ROOT, check, metrics

sys.path.insert(0, str(ROOT / "tests/reference"))
from machine import processor  # noqa: E402

TRACE = BINARY.parent / "sidestream-trace"
PEAK = 2.5e11  # fp32 FLOP/s of this machine, as far as these tests are concerned


def pretend_ceilings(folder):
    """From here on the programs of this test find a measurement of this processor: without one there is no MFU."""
    cache = folder / "cache/sidestream"
    cache.mkdir(parents=True)
    (cache / "ceilings.json").write_text(json.dumps({
        "processor": processor(), "cores": 1, "fp32_flops_per_s": PEAK,
        "bf16_flops_per_s": 2 * PEAK, "memory_bytes_per_s": 1e10}))
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")


def near(found, expected, share, what):
    check(found is not None and abs(found - expected) <= share * abs(expected), f"{what}: expected {expected}, found {found}")


def written_figures(run_dir):
    return [json.loads(gzip.open(file, "rt").read())["sidestream"] for file in sorted(run_dir.glob("trace/*/*.gz"))]


def check_mfu(run_dir, found):
    """Of metrics.jsonl, which has one formula; the traces know the FLOPs of both and reach about the same."""
    lines, figures = metrics(run_dir), written_figures(run_dir)
    check(found["mfu_source"] == "metrics.jsonl", found)
    near(found["mfu"], statistics.median(line["mfu"] for line in lines), 1e-9, "mfu")
    for line in lines:
        near(line["mfu"], figures[0]["flops_per_token"] * line["tokens_per_s"] / PEAK, 1e-6, "mfu of a line")
    ratio = figures[0]["flops_per_token_palm"] / figures[0]["flops_per_token"]
    check(1 < ratio < 2, f"FLOPs of a token: {figures[0]}")
    near(found["mfu_palm"], found["mfu"] * ratio, 1e-6, "mfu by PaLM's formula")
    for one in figures:
        check(one["peak_flops_per_s"] == PEAK and one["tokens_per_step"] == figures[0]["tokens_per_step"], one)
    performance = json.loads((run_dir / "run.json").read_text())["performance"]
    near(performance["tokens_per_s"], figures[0]["tokens_per_step"] * 1e3 / performance["step_ms_p50"], 1e-6, "tokens of a step")


def check_profiler_cost(run_dir, report, text, profiled_steps, warm_up_steps):
    """Against metrics.jsonl, which has every step: median of those in a window over median of the others, of rank 0, without
    the steps that set up the run or the profiler."""
    found = report["metrics"]
    times = {line["step"]: line["batch_cost_s"] * 1e3 for line in metrics(run_dir) if line["step"] > 3}
    last = max(profiled_steps, default=max(times))
    plain = [time for step, time in times.items() if step not in profiled_steps | warm_up_steps and step <= last]
    figures = written_figures(run_dir)[-2:]  # of the last window, of both ranks; rank 0 wrote metrics.jsonl
    check(all(one["profiled"] == bool(profiled_steps) and one["unprofiled_step_ms"] > 0 for one in figures), figures)
    near(figures[0]["unprofiled_step_ms"], statistics.median_high(plain), 1e-3, "step without the profiler")
    check(figures[0]["unprofiled_steps"] == len(plain), figures[0])
    if not profiled_steps:
        check(found["profiler_cost"] == 0 and "The profiler was off in the steps" in text, f"{found}\n{text}")
        return
    rows = [row for row in report["steps"] if row["rank"] == 0 and not row["tags"]]
    for row in rows:
        near(row["window_ns"] * 1e-6, times[row["step"]], 0.3, f"length of step {row['step']}")
    expected = statistics.median_high(row["window_ns"] for row in rows) * 1e-6 / figures[0]["unprofiled_step_ms"] - 1
    if found["profiler_cost"] is None:
        check(expected <= found["profiler_cost_below"] and "within their scatter" in text, f"{expected}: {found}\n{text}")
        return
    near(found["profiler_cost"], expected, 1e-6, "cost of the profiler")
    check(f"Steps of this trace are {found['profiler_cost'] * 100:.1f} % longer" in text, text)


def check_figures(run_dir, profiled_steps=(), warm_up_steps=()):
    """`profiled_steps`: those in windows of the profiler; `warm_up_steps`: in which it runs and keeps nothing."""
    file = run_dir / "figures.json"
    done = subprocess.run([TRACE, "report", run_dir, "--json", file], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    report = json.loads(file.read_text())
    check(re.search(r" \d+ tokens/s \(median of all steps\) of metrics.jsonl; MFU \d+\.\d % \(PaLM's formula \d+\.\d %\), of metrics.jsonl ",
                    " ".join(done.stdout.split())), done.stdout)
    check_mfu(run_dir, report["metrics"])
    check_profiler_cost(run_dir, report, done.stdout, set(profiled_steps), set(warm_up_steps))
