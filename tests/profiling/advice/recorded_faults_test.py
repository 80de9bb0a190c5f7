"""Recorded traces of planted faults: the right rule speaks, and no other one above 3 %: recorded_faults_test.py SIDESTREAM_TRACE

One folder a fault in tests/data/traces/faults, made by tests/soak/faults.py --recordings; expected.json says which rule has to find
it (none: healthy) and which ones follow from it.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import call, check  # noqa: E402
from machine import processor  # noqa: E402

PROGRAM = sys.argv[1]
FAULTS = ROOT / "tests/data/traces/faults"
WORTH_SAYING_PCT = 3
FEWEST = 10
LARGEST_BYTES = 300_000
# What the machine of the recordings can do: bf16 is at hand.
CEILINGS = {"cores": 2, "fp32_flops_per_s": 1e11, "bf16_flops_per_s": 4e11, "memory_bytes_per_s": 2e10}


def place(recording, folder, expected):
    """A copy that was recorded here, as far as the advice can tell, with the data folder that it read."""
    shutil.copytree(recording, folder)
    run = json.loads((folder / "run.json").read_text())
    run["machine"]["processor"] = processor()
    (folder / "run.json").write_text(json.dumps(run))
    if expected.get("data_files"):
        (folder / "data").mkdir()
        for number in range(expected["data_files"]):
            (folder / "data" / f"{number}.bin").write_bytes(bytes(4096))
        with open(folder / "config.cfg", "a") as config:
            config.write(f"data = {folder / 'data'}\n")
    return folder


def advice_on(recording, scratch, expected):
    folder = place(recording, scratch / recording.name, expected)
    call(PROGRAM, "report", folder, "--json", scratch / "report.json", "--quiet")
    return json.loads((scratch / "report.json").read_text())


def look_at(recording, scratch):
    expected = json.loads((recording / "expected.json").read_text())
    size = sum(path.stat().st_size for path in recording.rglob("*") if path.is_file())
    check(size <= LARGEST_BYTES, f"{recording.name}: {size} bytes")
    report = advice_on(recording, scratch, expected)
    said = {one["rule"]: one["gain_ceiling_pct"] for one in report["advice"]}
    check(expected["rule"] is None or expected["rule"] in said, f"{recording.name}: {expected['rule']} says nothing, but {said}")
    wrong = {rule: pct for rule, pct in said.items()
             if rule not in (expected["rule"], *expected["follows"]) and (pct or 0) > WORTH_SAYING_PCT}
    check(not wrong, f"{recording.name}: {wrong} should not be found")
    return expected["rule"], sorted(said)


def main():
    recordings = sorted(path.parent for path in FAULTS.glob("*/expected.json"))
    check(len(recordings) >= FEWEST, f"{len(recordings)} recordings in {FAULTS}")
    with tempfile.TemporaryDirectory(prefix="sidestream-recorded-") as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        (scratch / "cache/sidestream").mkdir(parents=True)
        machine = {"processor": processor(), **CEILINGS}
        (scratch / "cache/sidestream/ceilings.json").write_text(json.dumps({"schema": 2, "machines": {processor(): machine}}))
        rules = set()
        for recording in recordings:
            rule, said = look_at(recording, scratch)
            rules.add(rule)
            print(f"{recording.name}: {rule or 'healthy'}; said {said}", flush=True)
        check(len(rules) >= FEWEST - 2, f"only {rules}")
    print("passed")


main()
