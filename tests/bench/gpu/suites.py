"""Tests with the label gpu: which passed and which did not. Each program is called by itself, so that time that runs out takes no
result along."""
import json
import subprocess
import xml.etree.ElementTree

from session import Failed
from sides import ROOT

CTEST = ROOT / "build/env/bin/ctest"
LIMIT_S = 150
GPU = ("-L", "gpu")
ANY = ("-R", "^launch_nsys_script$")  # without a GPU: one test, for the script's sake


def programs(session, which):
    listed = subprocess.run([CTEST, "--test-dir", session.build, *which, "--show-only=json-v1"], capture_output=True, text=True,
                            check=True).stdout
    return list(dict.fromkeys(test["name"].split(".")[0] for test in json.loads(listed)["tests"]))


def statuses(session, program, which):
    report = session.folder / f"{program}.xml"
    labels = which if which == GPU else ()
    try:
        session.run([CTEST, "--test-dir", session.build, "-R", rf"^{program}(\.|$)", *labels, "--output-on-failure",
                     "--no-tests=error", "--output-junit", report], LIMIT_S)
    except Failed as failure:
        print(failure)
    if not report.exists():
        return {program: "no report"}
    return {case.get("name"): case.get("status") for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase")}


def measure(session, found, save):
    which = GPU if session.device == "cuda" else ANY
    done = found.setdefault("statuses", {})
    for program in programs(session, which):
        if program not in done:
            done[program] = statuses(session, program, which)
            save()
    found["failed"] = {name: status for of_program in done.values() for name, status in of_program.items() if status != "run"}
