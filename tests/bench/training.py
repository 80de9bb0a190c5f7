"""Trainings on CPU ranks under launch/run, timed by their own metrics, for the benchmarks of the folders beside."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/reference"))
from process_memory import descendants, proportional_bytes  # noqa: E402

CASES = {
    "gpt2-mini-fp32": dict(model="gpt2-mini", vocab=512, batch=16, length=256, precision="fp32", steps=6),
    "gpt2-mini-bf16": dict(model="gpt2-mini", vocab=512, batch=16, length=256, precision="bf16", steps=8),
    "gpt2-124m-fp32": dict(model="gpt2-124m", vocab=50257, batch=4, length=64, precision="fp32", steps=5),
    "gpt2-124m-bf16": dict(model="gpt2-124m", vocab=50257, batch=4, length=64, precision="bf16", steps=5),
}
WARMUP = 3


def command(run_dir, ranks, flags):
    words = [ROOT / "launch/run", "-np", ranks, "--", "train", "--run-dir", run_dir, "--data", "synthetic", "--device", "cpu",
             "--eval-every", 0, "--keep-checkpoints", 1, *flags]
    return [str(word) for word in words]


def shape_flags(model, vocabulary, length, batch_per_rank, precision):
    return ["--model", model, "--vocab-size", vocabulary, "--sequence-length", length, "--batch-size-per-rank", batch_per_rank,
            "--precision", precision]


def median_step_s(run_dir, warmup):
    lines = (pathlib.Path(run_dir) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return statistics.median(json.loads(line)["batch_cost_s"] for line in lines[warmup:])


def timed(ranks, warmup, steps, flags):
    """The median step after the warm-up, in seconds, and what run.json says of the run."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = pathlib.Path(folder) / "run"
        subprocess.run(command(run_dir, ranks, ["--steps", warmup + steps, *flags]), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return median_step_s(run_dir, warmup), json.loads((run_dir / "run.json").read_text(encoding="utf-8"))


def run_measured(command, is_rank):
    """Runs a command; returns its output and the peak of the proportional set sizes, added, of the processes whose command line
    is_rank picks."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    process = subprocess.Popen([str(word) for word in command], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    peak = 0

    def watch():
        nonlocal peak
        while process.poll() is None:
            ranks = [pid for pid in descendants(process.pid) if is_rank(command_line(pid))]
            peak = max(peak, sum(map(proportional_bytes, ranks)))
            time.sleep(0.5)

    watcher = threading.Thread(target=watch)
    watcher.start()
    output = process.communicate()[0]
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"exit code {process.returncode} from {' '.join(map(str, command))}\n{output}")
    return output, peak


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def measured(ranks, warmup, steps, flags):
    """The median step after the warm-up in seconds, and the peak of all ranks' memory."""
    program = str(ROOT / "build/release/sidestream")
    with tempfile.TemporaryDirectory() as folder:
        run_dir = pathlib.Path(folder) / "run"
        _, peak = run_measured(command(run_dir, ranks, ["--steps", warmup + steps, *flags]), lambda words: words[0] == program)
        return median_step_s(run_dir, warmup), peak


def run_case(case, ranks, flags):
    """Tokens per second of all ranks, and the peak of their memory."""
    step_s, peak = measured(ranks, WARMUP, case["steps"], [
        *shape_flags(case["model"], case["vocab"], case["length"], case["batch"], case["precision"]), *flags])
    return ranks * case["batch"] * case["length"] / step_s, peak
