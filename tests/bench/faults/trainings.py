"""Trainings under launch/run, for the benchmarks of this folder."""
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def command(args, run_dir, flags):
    words = [ROOT / "launch/run", "-np", args.ranks, "--build", args.build, "--", "train", "--run-dir", run_dir, "--data", "synthetic",
             "--device", "cpu", "--eval-every", 0, "--log-every", 1, "--lr-schedule", "constant", *flags]
    return [str(word) for word in words]


def environment():
    return os.environ | {"SIDESTREAM_FAULT_INJECTION": "1"}


def train(args, run_dir, flags):
    """The output of a training that ends well."""
    done = subprocess.run(command(args, run_dir, flags), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def text_of_s(values):
    """'0.123 s (0.100 to 0.150, 5)': median, range, how many."""
    return f"{statistics.median(values):.3f} s ({min(values):.3f} to {max(values):.3f}, {len(values)})"
