"""A sleep on one rank, in its loader, its forward, its backward or before a collective, is found in the recordings of the run:
the rank, the phase, and the cost of a step within a tenth.

    stragglers_test.py PROGRAM SIDESTREAM_TRACE
"""

import json
import pathlib
import subprocess
import sys

TRAINING = pathlib.Path(__file__).resolve().parents[1] / "training"
sys.path.insert(0, str(TRAINING))
from support import TINY, check, completed, environment, mpirun, undisturbed, workspace  # noqa: E402

RANKS, STEPS, SLEEP_MS, SLOW = 2, 10, 200, 1
PROGRAM, TRACE = sys.argv[1], sys.argv[2]


def recorded(run_dir, sleep):
    env = environment()
    if sleep:
        env["SIDESTREAM_TEST_SLEEP"] = sleep
    flags = TINY + ["--data", "synthetic", "--batch-size-per-rank", "2", "--steps", str(STEPS), "--record", "on",
                    "--loader-workers", "0", "--prefetch", "0"]
    done = completed(mpirun(RANKS, [PROGRAM, "train", "--run-dir", run_dir, *flags]), 120, env)
    check(done.returncode == 0, f"{sleep}: {done.returncode}\n{done.stdout}")
    json_file = pathlib.Path(run_dir) / "report.json"
    done = subprocess.run([TRACE, "report", run_dir, "--json", json_file], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    return json.loads(json_file.read_text())


def fault_of(found, phase):
    """What is wrong with the stragglers that a report names, or None."""
    if len(found) != 1 or found[0]["rank"] != SLOW or found[0]["phase"] != phase:
        return f"found {found}"
    cost_ms = found[0]["cost_ns_per_step"] * 1e-6
    if abs(cost_ms - SLEEP_MS) > 0.1 * SLEEP_MS:
        return f"found {cost_ms:.1f} ms of {SLEEP_MS} ms"
    return None


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        for place, phase in ("load", "data"), ("forward", "forward"), ("backward", "backward"), ("allreduce", "allreduce"):
            undisturbed(f"slow in {place}", lambda number: fault_of(
                recorded(root / f"{place}{number}", f"{SLOW}:{place}:{SLEEP_MS}")["stragglers"], phase))
            print(f"{place}: rank {SLOW}, {phase}")


main()
