"""Trainings on CPU ranks under launch/run, timed by their own metrics, for the benchmarks of the folders beside."""
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
