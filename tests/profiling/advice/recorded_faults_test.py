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
sys.path.insert(0, str(ROOT / "tests/soak"))
from calls import call, check  # noqa: E402
from fault_list import FAULTS as PLANTED  # noqa: E402
from fault_list import folder_of, rules_that_could_not_look  # noqa: E402
from machine import processor  # noqa: E402

PROGRAM = sys.argv[1]
FAULTS = ROOT / "tests/data/traces/faults"
WORTH_SAYING_PCT = 3
LARGEST_BYTES = 300_000
# What the machines of the recordings can do: some multiply bf16, some do not.
CEILINGS = {"cores": 2, "fp32_flops_per_s": 1e11, "memory_bytes_per_s": 2e10}
BF16_FLOPS_PER_S = {True: 4e11, False: 1e11}


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
    machine = {"processor": processor(), **CEILINGS, "bf16_flops_per_s": BF16_FLOPS_PER_S[expected["bf16_at_hand"]]}
    (scratch / "cache/sidestream/ceilings.json").write_text(json.dumps({"schema": 2, "machines": {processor(): machine}}))
    call(PROGRAM, "report", folder, "--json", scratch / "report.json", "--quiet")
    return json.loads((scratch / "report.json").read_text())


def check_first(name, expected, advice):
    """The rule comes first, but for what follows from the fault itself, and its bound is worth saying."""
    rules = [one["rule"] for one in advice]
    check(expected["rule"] in rules, f"{name}: {expected['rule']} says nothing, but {rules}")
    before = set(rules[:rules.index(expected["rule"])]) - set(expected["follows"])
    check(not before, f"{name}: {before} come before {expected['rule']}")
    bound = advice[rules.index(expected["rule"])]["gain_ceiling_pct"]
    check(bound is not None and bound > WORTH_SAYING_PCT, f"{name}: the bound of {expected['rule']} is {bound}")


def check_own_work(name, report):
    """Fused operators whose products aten::mm counts have GELU and biases left."""
    for one in report["top_ops"]:
        if one["name"] in ("sidestream::mlp", "sidestream::mlp_backward"):
            check(one["flops_per_s"] and one["bytes_per_s"] and one["cause"], f"{name}: no work of {one}")


def look_at(recording, scratch):
    expected = json.loads((recording / "expected.json").read_text())
    size = sum(path.stat().st_size for path in recording.rglob("*") if path.is_file())
    check(size <= LARGEST_BYTES, f"{recording.name}: {size} bytes")
    report = advice_on(recording, scratch, expected)
    check_own_work(recording.name, report)
    said = {one["rule"]: one["gain_ceiling_pct"] for one in report["advice"]}
    if expected["rule"]:
        check_first(recording.name, expected, report["advice"])
    unable = rules_that_could_not_look(report)
    check(unable == expected["could_not_look"], f"{recording.name}: {unable} could not look, expected {expected['could_not_look']}")
    wrong = {rule: pct for rule, pct in said.items()
             if rule not in (expected["rule"], *expected["follows"]) and (pct is None or pct > WORTH_SAYING_PCT)}
    check(not wrong, f"{recording.name}: {wrong} should not be found")
    return expected["rule"], sorted(said)


def main():
    recordings = sorted(path.parent for path in FAULTS.glob("*/expected.json"))
    planted = {folder_of(fault): fault.rule or None for fault in PLANTED}
    recorded = {recording.name: json.loads((recording / "expected.json").read_text())["rule"] for recording in recordings}
    check(recorded == planted, f"recordings in {FAULTS} and the list of faults differ in {set(recorded.items()) ^ set(planted.items())}")
    with tempfile.TemporaryDirectory(prefix="sidestream-recorded-") as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        (scratch / "cache/sidestream").mkdir(parents=True)
        for recording in recordings:
            rule, said = look_at(recording, scratch)
            print(f"{recording.name}: {rule or 'healthy'}; said {said}", flush=True)
    print("passed")


main()
