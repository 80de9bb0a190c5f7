"""launch/supervise over three hosts of one rank each, of which two are needed: one host fails twice, and the spare takes its place.

Skipped (77) where this user may not make namespaces.
"""
import json
import os
import sys

from namespaces import ROOT, hosts_and_flags, main, run_inside

sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import check  # noqa: E402
from support import BUILD, TINY  # noqa: E402

STEPS = 30
# On whichever host rank 1 is: in the first two starts that is the second one.
FAULTS = "kill:rank=1,step=12,attempt=1; kill:rank=1,step=22,attempt=2"


def supervise():
    """In the first host."""
    flags, (run_dir,) = hosts_and_flags()
    command = [ROOT / "launch/supervise", "-np", "2", *flags, "--build", BUILD, "--", "train", *TINY, "--data", "synthetic", "--device", "cpu",
               "--run-dir", run_dir, "--steps", str(STEPS), "--checkpoint-every", "5", "--inject", FAULTS]
    os.execv(command[0], [str(word) for word in command])


def end_of(run_dir):
    """Of the last start: hosts, ranks, exit code and step."""
    record = json.loads((run_dir / "run.json").read_text())
    return record["machine"]["nodes"], record["world_size"], record["exit_code"], record["last_step"]


def test_the_spare_takes_the_place_of_a_bad_host(scratch):
    run_dir = scratch / "run"
    code, said = run_inside(scratch, "111", [run_dir])
    check(code == 0, f"ended with {code}\n{said}")
    check(end_of(run_dir) == (2, 2, 0, STEPS), f"{end_of(run_dir)}\n{said}")
    ledger = [json.loads(line) for line in (run_dir / "ettr.jsonl").read_text().splitlines()]
    starts = [line for line in ledger if line["event"] == "launched"]
    check(len(starts) == 3, f"{len(starts)} starts\n{said}")
    check("10.231.0.2 has failed 2 times: left out" in said, f"nothing says who is left out:\n{said}")
    check("Terminated" not in said, f"the end of a helper is shown:\n{said}")


main(supervise, test_the_spare_takes_the_place_of_a_bad_host)
