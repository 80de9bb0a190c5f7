"""Everything that needs a GPU, in one run of at most eight minutes: tests, comparisons with the CPU, speed by toggle.

    build/env/bin/python tests/bench/gpu/measure.py [--build build/release] [--minutes 8] [--output DIR]

Writes DIR/gpu.json and DIR/gpu.md (tests/bench/results). What the time did not suffice for is named, not guessed.
Speed: GPT-2 124M, bf16, T=1024, synthetic tokens, one GPU; the median step after three, from run.json of each run.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BATCH, LENGTH, STEPS = 16, 1024, 20
TINY = ["--model", "gpt2-tiny", "--data", "synthetic", "--sequence-length", "32", "--batch-size-per-rank", "4",
        "--log-every", "1", "--steps", "20", "--seed", "7"]
# Each flag alone on top of --baseline, then all together.
TOGGLES = {
    "baseline": ["--baseline"],
    "+ bf16": ["--baseline", "--precision", "bf16"],
    "+ fused optimizer": ["--baseline", "--precision", "bf16", "--fused-optimizer", "on"],
    "+ reading ahead": ["--baseline", "--precision", "bf16", "--loader-workers", "1", "--prefetch", "4"],
    "+ reading ahead, pinned": ["--baseline", "--precision", "bf16", "--loader-workers", "1", "--prefetch", "4",
                                "--pin-memory", "on"],
    "tf32, all": ["--precision", "tf32"],
    "all together": ["--precision", "bf16"],
}


class Session:
    """Commands within the time that is left, and what came out of them."""

    def __init__(self, options):
        self.build = (ROOT / options.build).resolve()
        self.end = time.monotonic() + 60 * options.minutes
        self.left_out = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sidestream-gpu-"))

    def left_s(self):
        return self.end - time.monotonic()

    def run(self, name, command, limit_s, **more):
        """Output, or None when there was no time for it."""
        if self.left_s() < limit_s / 4:
            self.left_out.append(name)
            return None
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
        try:
            done = subprocess.run([str(word) for word in command], env=env, text=True, errors="replace",
                                  timeout=min(limit_s, self.left_s()), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            self.left_out.append(name + " (cut off)")
            return None
        if done.returncode != 0:
            print(f"{name}: exit code {done.returncode}\n{done.stdout[-2000:]}", file=sys.stderr)
        return done

    def train(self, name, flags, ranks=1, limit_s=90):
        run_dir = self.folder / re.sub(r"\W+", "_", name)
        command = [self.build / "sidestream", "train", "--run-dir", run_dir, *flags]
        if ranks > 1:
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", ranks, *command]
        done = self.run(name, command, limit_s)
        return run_dir if done is not None and done.returncode == 0 else None


def lines_of(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def machine():
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                           capture_output=True, text=True)
    return query.stdout.strip() or "unknown"


def tests(session):
    """ctest by label gpu; per test: passed or not."""
    ctest = shutil.which("ctest", path=f"{ROOT}/build/env/bin:{os.environ['PATH']}")
    done = session.run("tests", [ctest, "--test-dir", session.build, "-L", "gpu", "--output-on-failure"], 150)
    if done is None:
        return None
    return {"passed": len(re.findall(r"\bPassed\b", done.stdout)), "failed": len(re.findall(r"\*\*\*(?:Failed|Timeout)", done.stdout))}


def memory_check(session):
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    program = session.build / "tests/core/optim/core_optim_kernels_test"
    if tool is None or not program.exists():
        session.left_out.append("compute-sanitizer (not there)")
        return None
    done = session.run("compute-sanitizer", [tool, "--error-exitcode", "9", program], 90)
    return None if done is None else ("clean" if done.returncode == 0 else "errors")


def losses(run_dir):
    return None if run_dir is None else [line["loss"] for line in lines_of(run_dir)]


def against_cpu(session):
    """Largest difference of 20 fp32 losses."""
    gpu = losses(session.train("tiny on the GPU", TINY + ["--device", "cuda"]))
    cpu = losses(session.train("tiny on the CPU", TINY + ["--device", "cpu"]))
    return None if gpu is None or cpu is None else max(abs(a - b) for a, b in zip(gpu, cpu))


def identical_bits(session):
    """Two ranks on one GPU, fixed order: losses of every strategy are the same numbers."""
    flags = TINY + ["--device", "cuda", "--share-gpus", "on", "--deterministic"]
    found = {}
    for name, more in {"all on": [], "overlap off": ["--overlap", "off"], "bucketing off": ["--bucketing", "off"],
                       "pinned off": ["--pin-memory", "off"], "staged": ["--backend", "mpi"]}.items():
        found[name] = losses(session.train("two ranks, " + name, flags + more, ranks=2))
    reference = found.pop("all on")
    return {name: None if one is None or reference is None else one == reference for name, one in found.items()}


def speed(session):
    table = {}
    for name, flags in TOGGLES.items():
        run_dir = session.train("124M " + name, [
            "--model", "gpt2-124m", "--data", "synthetic", "--sequence-length", str(LENGTH), "--batch-size-per-rank",
            str(BATCH), "--device", "cuda", "--log-every", "10", "--steps", str(STEPS), *flags])
        if run_dir is None:
            table[name] = None
            continue
        record = json.loads((run_dir / "run.json").read_text())["performance"]
        last = lines_of(run_dir)[-1]
        table[name] = {"tokens_per_s": record["tokens_per_s"], "step_ms": record["step_ms_p50"], "mfu": last["mfu"],
                       "memory_bytes": last["memory_bytes"], "reader_share": record["reader_cost_ms_p50"] / record["step_ms_p50"],
                       "loss": last["loss"]}
    return table


def peer(session):
    done = session.run("PyTorch eager", [sys.executable, ROOT / "tests/bench/gpu/peer.py", "--batch", BATCH, "--length",
                                         LENGTH, "--steps", STEPS], 120)
    if done is None or done.returncode != 0:
        return None
    result = json.loads(done.stdout.splitlines()[-1])
    step_ms = statistics.median(result["step_ms"])
    return {"step_ms": step_ms, "tokens_per_s": BATCH * LENGTH / step_ms * 1e3, "memory_bytes": result["memory_bytes"]}


def loads_in_transformers(session):
    folder = next((session.folder / "124M_all_together").glob("checkpoints/step_*"), None)
    if folder is None:
        session.left_out.append("checkpoint in transformers")
        return None
    code = ("import sys, transformers; m = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1]); "
            "print(sum(p.numel() for p in m.parameters()))")
    done = session.run("checkpoint in transformers", [sys.executable, "-c", code, folder], 60)
    return None if done is None else done.returncode == 0


def table_text(result):
    rows = [f"# One GPU\n\n{result['machine']}, {result['date']}. GPT-2 124M, B={BATCH}, T={LENGTH}, bf16 unless said.\n",
            "| | tokens/s | step ms | MFU | reader | against PyTorch eager |", "|---|--:|--:|--:|--:|--:|"]
    eager = result["pytorch_eager"]
    for name, one in result["speed"].items():
        if one is None:
            rows.append(f"| {name} | not run | | | | |")
            continue
        ratio = f"{one['tokens_per_s'] / eager['tokens_per_s']:.2f}" if eager else "?"
        mfu = "?" if one["mfu"] is None else f"{100 * one['mfu']:.1f} %"
        rows.append(f"| {name} | {one['tokens_per_s']:.0f} | {one['step_ms']:.1f} | {mfu} | "
                    f"{100 * one['reader_share']:.2f} % | {ratio} |")
    if eager:
        rows.append(f"| PyTorch eager | {eager['tokens_per_s']:.0f} | {eager['step_ms']:.1f} | | | 1 |")
    checks = {key: result[key] for key in ("tests", "compute_sanitizer", "loss_difference_to_cpu", "identical_bits",
                                           "loads_in_transformers", "left_out")}
    return "\n".join(rows) + "\n\n" + "\n".join(f"- {key}: {json.dumps(value)}" for key, value in checks.items()) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--output", default="tests/bench/results")
    options = parser.parse_args()
    session = Session(options)
    result = {"machine": machine(), "date": datetime.date.today().isoformat(),
              "build": subprocess.run([session.build / "sidestream", "--version"], capture_output=True, text=True).stdout,
              "speed": speed(session), "pytorch_eager": peer(session), "loads_in_transformers": loads_in_transformers(session),
              "tests": tests(session), "loss_difference_to_cpu": against_cpu(session),
              "identical_bits": identical_bits(session), "compute_sanitizer": memory_check(session)}
    result["left_out"] = session.left_out
    shutil.rmtree(session.folder, ignore_errors=True)
    output = pathlib.Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "gpu.json").write_text(json.dumps(result, indent=1) + "\n")
    (output / "gpu.md").write_text(table_text(result))
    print(table_text(result))


if __name__ == "__main__":
    main()
