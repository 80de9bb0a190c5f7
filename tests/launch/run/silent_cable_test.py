"""A training over two hosts whose cable goes silent, under launch/run: the deadline ends it, and it goes on from its last checkpoint.

Skipped (77) where this user may not make namespaces.
"""
import json
import os
import re
import sys

from namespaces import ROOT, hosts_and_flags, main, run_inside

sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import check  # noqa: E402
from support import BUILD, TINY, metrics, processes_of_ranks, train  # noqa: E402

SAVED, DEADLINE_S, PATIENCE_S = 20, 6, 5
ENDED = 137  # of launch/run, which has had to end mpirun
FLAGS = [*TINY, "--data", "synthetic", "--device", "cpu", "--lr-schedule", "constant", "--checkpoint-every", str(SAVED)]


def run_over_hosts():
    """In the first host. Its steps take a while, so that the cable is cut in the middle."""
    flags, (run_dir,) = hosts_and_flags()
    command = [ROOT / "launch/run", "-np", "2", *flags, "--patience", PATIENCE_S, "--build", BUILD, "--", "train", *FLAGS, "--run-dir", run_dir,
               "--steps", "100000", "--timeout-step", DEADLINE_S, "--timeout-checkpoint", 2 * DEADLINE_S, "--inject", "slow:rank=0,ms=20"]
    os.execv(command[0], [str(word) for word in command])


def test_the_deadline_ends_it_and_it_goes_on(scratch):
    run_dir = scratch / "run"
    saved = run_dir / f"checkpoints/step_{SAVED:08d}/manifest.json"
    code, said = run_inside(scratch, "11", [run_dir], {"SIDESTREAM_LINK_SILENT_WHEN": f"until [ -e {saved} ]; do sleep 0.1; done",
                                                       "SIDESTREAM_LINK_SILENT_FOR": "90"})
    check(code == ENDED, f"ended with {code}\n{said}")
    named = re.findall(r"sidestream \[rank (\d)\]: .* missing: rank (\d) on sidestream-(\d) \(gives no sign of life\)", said)
    check(named and all(other == host != rank for rank, other, host in named), f"{named}\n{said}")
    check("but mpirun stays (another host does not answer): ending it" in said, said)
    check("Killed" not in said, f"the end of a helper is shown:\n{said}")
    check(not processes_of_ranks(run_dir), "ranks were left behind")
    records = [json.loads(file.read_text()) for file in sorted(run_dir.glob("flight/from_step_00000000/rank_*.json"))]
    check([record["rank"] for record in records] == [0, 1], f"{records}")

    at = max(int(folder.name[5:]) for folder in run_dir.glob("checkpoints/step_*[0-9]"))
    said = train(2, run_dir, [*FLAGS, "--resume", "auto", "--steps", at + 2])
    check("skipped checkpoint" not in said and not list(run_dir.glob("checkpoints/*.pending")), said)
    check([line["step"] for line in metrics(run_dir)] == list(range(1, at + 3)), f"{metrics(run_dir)}")


main(run_over_hosts, test_the_deadline_ends_it_and_it_goes_on)
