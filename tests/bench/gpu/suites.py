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


def pattern(names):
    return "^(" + "|".join(re.escape(name) for name in names) + ")$"


def measure(session, found, save):
    """Adds to what earlier calls found; tests that passed then are left out. Raises NoTime where nothing could be started."""
    which = GPU if session.device == "cuda" else ANY
    done = found.setdefault("statuses", {})
    passed = [name for name, status in done.items() if status == "Passed"]
    log = session.folder / "ctest.log"
    workers = max(2, min(12, len(os.sched_getaffinity(0)) - 2))
    failed = {}
    try:
        session.run([CTEST, "--test-dir", session.build, *which, *(["-E", pattern(passed)] if passed else []), "--parallel", workers,
                     "--output-on-failure", *([] if passed else ["--no-tests=error"]), "-O", log], LIMIT_S, least_s=20)
    except Failed as failure:
        print(failure)
        failed["ctest"] = str(failure)
    finally:
        done.update(statuses(log.read_text(errors="replace") if log.exists() else ""))
        save()
    of_tests = {name: status for name, status in done.items() if status != "Passed"}
    found["failed"] = of_tests or failed  # ctest itself fails where a test does
    save()
