"""The update of the optimizer on the device: its kernels' time in the trainer's own timeline, as a share of what memory gives.

An update with moments in fp32 moves 28 bytes a parameter: it reads gradient and copy or weight, weight and both moments, and
writes weight, copy and both moments; with moments in bf16 20. The norm before it reads the gradient once more.
"""
import gzip
import json
import shutil
import sys

from devices import today
from session import Failed
from sides import LEAST_S, LIMIT_S, ROOT

MODEL = "gpt2-124m"
BYTES = {"fp32": 28, "bf16": 20}  # of a parameter, by the moments' type
UPDATE, NORM = "update_kernel", "squares_kernel"
SPEC = "wait=4,warmup=2,active=6,repeat=1"
STEPS = 14


def seconds_of_step(events, kernel):
    """Mean over the steps of a timeline of the time of all kernels whose name has this in it."""
    steps = sum(event.get("name", "").startswith("ProfilerStep#") and event.get("cat") == "user_annotation" for event in events)
    us = [event["dur"] for event in events if event.get("cat") == "kernel" and kernel in event["name"]]
    if not steps or not us:
        raise Failed(f"the timeline has {steps} steps and {len(us)} kernels with {kernel} in their name")
    return sum(us) * 1e-6 / steps


def events_of(run_dir):
    files = sorted(run_dir.glob("trace/*/*.pt.trace.json.gz"))
    if not files:
        raise Failed(f"no timeline in {run_dir}/trace")
    with gzip.open(files[0], "rt", encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


def update(session, moments):
    """Bytes per second of the update alone, and together with the norm."""
    run_dir = session.folder / "profiled"
    shutil.rmtree(run_dir, ignore_errors=True)
    try:
        session.run([session.build / "sidestream", "train", "--run-dir", run_dir, "--device", session.device, "--model", MODEL, "--data",
                     "synthetic", "--batch-size-per-rank", 4, "--precision", "bf16", "--steps", STEPS, "--eval-every", 0, "--profile",
                     SPEC, "--optimizer-state-dtype", moments], LIMIT_S, least_s=LEAST_S)
        events = events_of(run_dir)
        parameters = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))["parameters"]
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)
    seconds, norm = seconds_of_step(events, UPDATE), seconds_of_step(events, NORM)
    return {"update_ms": seconds * 1e3, "bytes_per_s": BYTES[moments] * parameters / seconds,
            "with_norm_bytes_per_s": (BYTES[moments] + 2) * parameters / (seconds + norm)}


def copy(session):
    output = session.run([sys.executable, ROOT / "tests/bench/gpu/device_copy.py", "--device", session.device], LIMIT_S)
    return json.loads(output.splitlines()[-1])["bytes_per_s"]


def measure(session, found, repeats, save):
    found.setdefault("rounds", [])
    while len(found["rounds"]) < repeats:
        found["rounds"].append({"date": today(), "copy_bytes_per_s": copy(session), **{moments: update(session, moments) for moments in BYTES}})
        save()
