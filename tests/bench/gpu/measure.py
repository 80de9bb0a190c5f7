"""Everything that needs a GPU, in one run of at most eight minutes: speed by toggle, PyTorch eager beside it, tests.

    build/env/bin/python tests/bench/gpu/measure.py [--build build/release] [--minutes 8] [--output DIR]
    build/env/bin/python tests/bench/gpu/measure.py --device cpu --quick --output DIR     (tries the script itself)

Writes DIR/gpu.json and DIR/gpu.md (tests/bench/results). What the time did not suffice for is named, not guessed.
Speed: GPT-2 124M, T=1024, synthetic tokens, one GPU; the median step after three, from run.json of each run.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import table

ROOT = pathlib.Path(__file__).resolve().parents[3]
CTEST = ROOT / "build/env/bin/ctest"
BF16 = ["--baseline", "--precision", "bf16"]
AHEAD = ["--loader-workers", "1", "--prefetch", "4"]
# Name, flags, and the peer that does the same work: the baseline, each flag alone on bf16, then all together.
TOGGLES = [
    ("baseline (fp32)", ["--baseline"], "eager fp32"),
    ("tf32", ["--baseline", "--precision", "tf32"], "eager tf32"),
    ("bf16", BF16, "eager bf16"),
    ("bf16 + bucketing", [*BF16, "--bucketing", "on"], "eager bf16"),
    ("bf16 + overlap", [*BF16, "--bucketing", "on", "--overlap", "on"], "eager bf16"),
    ("bf16 + fused optimizer", [*BF16, "--fused-optimizer", "on"], "eager bf16"),
    ("bf16 + fused operators", [*BF16, "--fused-ops", "on"], "eager bf16"),
    ("fp16", ["--baseline", "--precision", "fp16"], "eager fp16"),
    ("fp16 + fused operators", ["--baseline", "--precision", "fp16", "--fused-ops", "on"], "eager fp16"),
    ("fp32 + fused operators", ["--baseline", "--fused-ops", "on"], "eager fp32"),
    ("bf16 + reading ahead", [*BF16, *AHEAD], "eager bf16"),
    ("bf16 + reading ahead, pinned", [*BF16, *AHEAD, "--pin-memory", "on"], "eager bf16"),
    ("bf16 + padded vocabulary", [*BF16, "--pad-vocab", "128"], "eager bf16"),
    ("bf16 + fused optimizer, recomputed blocks", [*BF16, "--fused-optimizer", "on", "--recompute", "blocks"], "eager bf16"),
    ("the same, residuals offloaded", [*BF16, "--fused-optimizer", "on", "--recompute", "blocks", "--offload", "residuals"],
     "eager bf16"),
    ("the same, optimizer offloaded", [*BF16, "--fused-optimizer", "on", "--recompute", "blocks", "--offload", "optimizer"],
     "eager bf16"),
    ("bf16 + CUDA graph", [*BF16, "--fused-optimizer", "on", "--cuda-graph", "on"], "eager bf16"),
    ("all together", ["--precision", "bf16", "--pad-vocab", "128"], "eager bf16, fused"),
    ("all together + CUDA graph", ["--precision", "bf16", "--pad-vocab", "128", "--cuda-graph", "on"], "eager bf16, fused"),
]
ON_GPUS_ONLY = {"tf32", "fp16", "--offload", "--cuda-graph"}
PEERS = {"eager fp32": ["fp32", "plain"], "eager tf32": ["tf32", "plain"], "eager bf16": ["bf16", "plain"],
         "eager fp16": ["fp16", "plain"],
         "eager bf16, fused": ["bf16", "fused"]}


class Session:
    """Commands within the time that is left, and what came out of them."""

    def __init__(self, options):
        self.options = options
        self.build = (ROOT / options.build).resolve()
        self.end = time.monotonic() + 60 * options.minutes
        self.left_out = []
        self.failed = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sidestream-gpu-"))
        quick = options.quick
        self.model, self.batch, self.length, self.steps = ("gpt2-tiny", 2, 32, 6) if quick else ("gpt2-124m", 16, 1024, 20)

    def run(self, name, command, limit_s):
        """The finished command, or None when there was no time for it."""
        left_s = self.end - time.monotonic()
        if left_s < limit_s / 4:
            self.left_out.append(name)
            return None
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        words = [str(word) for word in command]
        process = subprocess.Popen(words, env=env, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=min(limit_s, left_s))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # what it started too: ranks that stay would slow down all that follows
            process.communicate()
            self.left_out.append(name + " (cut off)")
            return None
        if process.returncode != 0:
            self.failed.append(f"{name}: exit code {process.returncode}")
            print(f"{name}: exit code {process.returncode}\n{output[-2000:]}", file=sys.stderr)
        return subprocess.CompletedProcess(words, process.returncode, output)

    def train(self, name, flags, limit_s=90):
        run_dir = self.folder / re.sub(r"\W+", "_", name)
        done = self.run(name, [self.build / "sidestream", "train", "--run-dir", run_dir, "--device", self.options.device,
                               *flags], limit_s)
        return run_dir if done is not None and done.returncode == 0 else None


def lines_of(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def versions(session):
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    smi = subprocess.run(query, capture_output=True, text=True) if shutil.which(query[0]) else None
    build = subprocess.run([session.build / "sidestream", "--version"], capture_output=True, text=True).stdout
    return {"device": smi.stdout.strip().splitlines() if smi else ["no GPU"], "build": build.strip().splitlines(),
            "date": datetime.date.today().isoformat()}


def speed_of(session, name, flags):
    shape = ["--model", session.model, "--data", "synthetic", "--sequence-length", session.length, "--batch-size-per-rank",
             session.batch, "--log-every", "10", "--steps", session.steps, "--eval-every", "0"]
    run_dir = session.train(name, [*shape, *flags])
    if run_dir is None:
        return None
    record = json.loads((run_dir / "run.json").read_text())["performance"]
    last = lines_of(run_dir)[-1]
    shutil.rmtree(run_dir)  # a checkpoint of 1.5 GB
    return {"tokens_per_s": record["tokens_per_s"], "step_ms": record["step_ms_p50"], "mfu": last["mfu"],
            "memory_bytes": last["memory_bytes"], "data_share": record["reader_cost_ms_p50"] / record["step_ms_p50"],
            "loss": last["loss"]}


def speed(session):
    """Each toggle; tf32, fp16, CUDA graphs and what lies on a GPU's host need a GPU."""
    chosen = [one for one in TOGGLES if session.options.device == "cuda" or not ON_GPUS_ONLY.intersection(one[1])]
    return {name: {"peer": peer, "result": speed_of(session, name, flags)} for name, flags, peer in chosen}


def peers(session):
    results = {}
    for name, (precision, optimizer) in PEERS.items():
        if precision in ON_GPUS_ONLY and session.options.device != "cuda":
            continue
        done = session.run(name, [sys.executable, ROOT / "tests/bench/gpu/peer.py", "--device", session.options.device,
                                  "--model", session.model, "--batch", session.batch, "--length", session.length, "--steps",
                                  session.steps, "--precision", precision, "--optimizer", optimizer], 90)
        results[name] = None
        if done is not None and done.returncode == 0:
            found = json.loads(done.stdout.splitlines()[-1])
            step_ms = statistics.median(found["step_ms"])
            results[name] = {"step_ms": step_ms, "tokens_per_s": session.batch * session.length / step_ms * 1e3,
                             "memory_bytes": found["memory_bytes"], "torch": found["torch"]}
    return results


def programs(session, which):
    """Names of test programs with such tests, without their cases: each is called by itself, so that time that runs out takes
    no result along."""
    listed = subprocess.run([CTEST, "--test-dir", session.build, *which, "--show-only=json-v1"], capture_output=True, text=True,
                            check=True).stdout
    return list(dict.fromkeys(test["name"].split(".")[0] for test in json.loads(listed)["tests"]))


def tests(session):
    """ctest by label gpu: the tests that passed and those that did not. Without a GPU: one test, for the script's sake."""
    which = ["-L", "gpu"] if session.options.device == "cuda" else ["-R", "^launch_nsys_script$"]
    by_name = {}
    for program in programs(session, which):
        report = session.folder / f"{program}.xml"
        session.run(f"tests of {program}", [CTEST, "--test-dir", session.build, "-R", rf"^{program}(\.|$)", *(which if which[0] == "-L" else []),
                                            "--output-on-failure", "--no-tests=error", "--output-junit", report], 150)
        if report.exists():
            cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
            by_name.update((case.get("name"), case.get("status")) for case in cases)
    return {"passed": sum(status == "run" for status in by_name.values()),
            "not_passed": sorted(name for name, status in by_name.items() if status != "run")}


def measure(session):
    results = {**versions(session), "model": session.model, "batch": session.batch, "sequence_length": session.length,
               "speed": speed(session), "peers": peers(session), "tests": tests(session)}
    return {**results, "left_out": session.left_out, "failed": session.failed}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--output", default="tests/bench/results")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="a tiny model")
    options = parser.parse_args()
    session = Session(options)
    try:
        result = measure(session)
    finally:
        shutil.rmtree(session.folder, ignore_errors=True)
    output = pathlib.Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "gpu.json").write_text(json.dumps(result, indent=1) + "\n")
    (output / "gpu.md").write_text(table.text(result))
    print(table.text(result))
    sys.exit(1 if result["failed"] else 0)


if __name__ == "__main__":
    main()
