"""Tests with the label gpu, side by side: which passed and which did not. What ctest says is kept as it comes, so that time that runs
out takes no result along."""
import os
import re

from session import Failed
from sides import ROOT

CTEST = ROOT / "build/env/bin/ctest"
LIMIT_S = 600
GPU = ("-L", "gpu")
ANY = ("-R", "^launch_nsys_script$")  # without a GPU: one test, for the script's sake
RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+).*?\.\.* *\**(Passed|Failed|Timeout|Skipped|Not Run|Exception|Subprocess aborted)")


def statuses(log):
    """By test, of the text that ctest writes."""
    return {found[1]: found[2] for line in log.splitlines() if (found := RESULT.match(line))}


def measure(session, found, save):
    which = GPU if session.device == "cuda" else ANY
    log = session.folder / "ctest.log"
    workers = max(2, min(12, len(os.sched_getaffinity(0)) - 2))
    try:
        session.run([CTEST, "--test-dir", session.build, *which, "--parallel", workers, "--output-on-failure", "--no-tests=error",
                     "-O", log], LIMIT_S, least_s=20)
    except Failed as failure:
        print(failure)
    finally:
        text = log.read_text(errors="replace") if log.exists() else ""
        found["statuses"] = statuses(text)
        found["failed"] = {name: status for name, status in found["statuses"].items() if status != "Passed"}
        if not found["statuses"]:
            found["failed"] = {"tests": "ctest named none"}
        save()
