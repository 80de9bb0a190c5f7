"""Short recordings of the planted faults, small enough to keep: tests/data/traces/faults, one folder a fault.

Called by tests/soak/faults.py --recordings DIR. A recording is a run directory without metrics: config.cfg and run.json without
what says whose machine made it, the traces of all ranks, and expected.json with what the advice has to say about it.
"""
import dataclasses
import json
import shutil
import subprocess
import sys

from fault_list import BF16, MINI, MULTIPLIES_BF16, folder_of, rules_that_could_not_look
from support import ROOT

LARGEST_BYTES = 300_000
STEPS = 10
ACTIVE = {True: 5, False: 2}  # by whether ranks are compared, which a few steps do not allow
SAMPLES_HZ = {True: 20, False: 500}  # by whether steps sleep: of some seconds, or of some milliseconds
KEPT = ("world_size", "threads_per_rank", "backend", "precision", "parameters", "version", "numa", "data")
ATTEMPTS = 6  # on a machine that is shared, ranks are late at random
NEED_RANKS = {"not-overlapped", "tiny-buckets", "one-bucket", "straggler"}
SLEEP_MS = 2000  # so that a fault stays one on a busy machine


def small(fault):
    """The same fault in the smallest model; one rank where the rule needs no second one."""
    large = fault.rule == "one-bucket"  # gradients of some megabytes
    common = MINI + BF16 + ["--shared-memory", "off"] if fault.rate else fault.common  # on one host, and no cable
    words = ["gpt2-tiny" if word == "gpt2-mini" and not large else word for word in common]
    sleep = ":".join([*fault.sleep.split(":")[:2], str(SLEEP_MS)]) if fault.sleep else ""
    if fault.rule == "not-overlapped":
        words += ["--bucket-mb", "0.5", "--first-bucket-mb", "0.5"]  # more than one bucket of a small model
    alone = fault.rule and fault.rule not in NEED_RANKS
    return dataclasses.replace(fault, common=words, rate="", sleep=sleep, ranks=1 if alone else fault.ranks)


def window_of(fault):
    """Operators with their shapes and samples of the system, so that every rule has something to look at."""
    active = ACTIVE[fault.rule == "straggler"]
    return ["--profile", f"wait=3,warmup=1,active={active},repeat=1", "--profile-shapes", "--sample-hz", str(SAMPLES_HZ[bool(fault.sleep)])]


def scrubbed_run(source, target):
    """run.json and config.cfg as far as the advice reads them."""
    run = json.loads((source / "run.json").read_text())
    kept = {key: run[key] for key in KEPT}
    kept["machine"] = {"processor": "some processor", "nodes": run["machine"]["nodes"], "cores": run["machine"]["cores"]}
    kept |= {"build": "", "command_line": "", "exit_code": 0, "performance": None}
    (target / "run.json").write_text(json.dumps(kept, indent=1) + "\n")
    lines = [line for line in (source / "config.cfg").read_text().splitlines()
             if line.split("=")[0].strip() not in ("run-dir", "init", "config") and not ("=" in line and "/" in line.split("=")[1])]
    (target / "config.cfg").write_text("\n".join(lines) + "\n")
    (target / "metrics.jsonl").write_text("")


def keep(source, target, expected):
    """A copy of a run directory that can be given away."""
    shutil.rmtree(target, ignore_errors=True)
    window = sorted(path for path in (source / "trace").iterdir() if path.is_dir())[-1]
    to = target / "trace" / window.name
    to.mkdir(parents=True)
    traces = sorted(window.glob("*.pt.trace.json.gz"))
    subprocess.run([sys.executable, ROOT / "launch/scrub-trace", *traces, "--output", to], check=True, stdout=subprocess.DEVNULL)
    scrubbed_run(source, target)
    (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    if size > LARGEST_BYTES:
        raise RuntimeError(f"{target}: {size} bytes, at most {LARGEST_BYTES} are wanted: record fewer steps, or fewer layers")
    return size


def record(fault, report, wrong_findings, folder, target):
    """Takes recordings until one shows the fault and nothing else. True: it was kept."""
    fault, window = small(fault), window_of(fault)
    for attempt in range(1, ATTEMPTS + 1):
        found = report(folder / "recorded", fault, "faulty", steps=STEPS, window=window)
        rules = {one["rule"] for one in found["advice"]}
        print(f"{fault.name}, attempt {attempt}: {[(one['rule'], one['gain_ceiling_pct']) for one in found['advice']]}", flush=True)
        if (fault.rule and fault.rule not in rules) or wrong_findings(found["advice"], fault):
            continue
        expected = {"rule": fault.rule or None, "follows": list(fault.follows), "data_files": fault.data_files, "attempts": attempt,
                    "could_not_look": rules_that_could_not_look(found), "bf16_at_hand": MULTIPLIES_BF16}
        size = keep(folder / "recorded", target / folder_of(fault), expected)
        print(f"{fault.name}: {size / 1000:.0f} kB in {target / folder_of(fault)}", flush=True)
        return True
    print(f"{fault.name}: no recording in {ATTEMPTS} attempts shows it alone", flush=True)
    return False
