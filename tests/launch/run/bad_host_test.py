"""launch/supervise over three hosts of one rank each, of which two are needed: one host fails twice, and the spare takes its place.

The hosts are network namespaces (tests/comm/run_in_namespaces.sh). What that script takes for mpirun starts this file, which hands the words
that make hosts of them on to launch/supervise. Skipped (77) where this user may not make namespaces.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import check  # noqa: E402
from support import BUILD, SKIPPED, TINY, environment  # noqa: E402

NAMESPACES = ROOT / "tests/comm/run_in_namespaces.sh"
STEPS, TIMEOUT_S = 30, 150
# On whichever host rank 1 is: in the first two starts that is the second one.
FAULTS = "kill:rank=1,step=12,attempt=1; kill:rank=1,step=22,attempt=2"


def may_make_namespaces():
    probe = ["unshare", "--mount", "--net", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"]
    return shutil.which("ip") and subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0


def supervise(words):
    """In the first host. `words`: -np 3 --host a:1,b:1,c:1, flags of mpirun, and the run directory as the last one."""
    *flags, run_dir = words[words.index("--host") + 2:]
    command = [ROOT / "launch/supervise", "-np", "2", "--hosts", words[words.index("--host") + 1], "--build", BUILD]
    for flag in flags:
        command += ["--mpi-arg", flag]
    command += ["--", "train", *TINY, "--data", "synthetic", "--device", "cpu", "--run-dir", run_dir, "--steps", str(STEPS),
                "--checkpoint-every", "5", "--inject", FAULTS]
    os.execv(command[0], [str(word) for word in command])


def ended(words):
    """(exit code, what was said). One that takes too long is asked to end first: it removes the hosts that it made."""
    process = subprocess.Popen([str(word) for word in words], env=environment() | {"SIDESTREAM_FAULT_INJECTION": "1"}, text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        said, _ = process.communicate(timeout=20)
    return process.returncode, said


def end_of(run_dir):
    """Of the last start: hosts, ranks, exit code and step."""
    record = json.loads((run_dir / "run.json").read_text())
    return record["machine"]["nodes"], record["world_size"], record["exit_code"], record["last_step"]


def test_the_spare_takes_the_place_of_a_bad_host(scratch):
    run_dir = scratch / "run"
    launcher = scratch / "launcher"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{pathlib.Path(__file__).resolve()}" "$@"\n')
    launcher.chmod(0o700)
    words = ["bash", NAMESPACES, launcher, "1", "1", "1", run_dir]
    code, said = ended(words)
    check(code == 0, f"ended with {code}\n{said}")
    check(end_of(run_dir) == (2, 2, 0, STEPS), f"{end_of(run_dir)}\n{said}")
    ledger = [json.loads(line) for line in (run_dir / "ettr.jsonl").read_text().splitlines()]
    starts = [line for line in ledger if line["event"] == "launched"]
    check(len(starts) == 3, f"{len(starts)} starts\n{said}")
    check("10.231.0.2 has failed 2 times: left out" in said, f"nothing says who is left out:\n{said}")
    check("Terminated" not in said, f"the end of a helper is shown:\n{said}")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "-np":
        supervise(sys.argv[1:])
    if not may_make_namespaces():
        print("this user may not make namespaces, or there is no ip(8)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="sidestream-bad-host-") as scratch:
        test_the_spare_takes_the_place_of_a_bad_host(pathlib.Path(scratch))
    print("passed")


main()
