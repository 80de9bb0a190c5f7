"""The program as a whole: what it says of itself, output that cannot be written, a failure of one rank before MPI is up."""

import pathlib
import subprocess

from support import BINARY, TINY, check, completed, environment, mpirun, only_message, run_command, workspace


def check_version():
    done = subprocess.run([BINARY, "--version"], text=True, capture_output=True)
    check(done.returncode == 0, f"--version: {done}")
    for part in ("Sidestream: ", "LibTorch  : ", "CUDA      : ", "NCCL      : ", "MPI       : Open MPI ", "Sanitizers: "):
        check(part in done.stdout, f"--version lacks '{part}':\n{done.stdout}")


def check_lost_output():
    """A full disk behind `>` is no success; a reader that has seen enough is."""
    for command in (["--version"], ["train", "--help"], ["train", "--data", "synthetic", "--print-config"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, *command], stdout=full, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 1 and "standard output" in done.stderr, f"{command} into a full device: {done}")
    head = subprocess.run(["bash", "-c", f"set -o pipefail; {BINARY} train --help | head -1 > /dev/null"], capture_output=True, text=True)
    check(head.stderr == "", f"{head}")


def check_closed_streams(root):
    """Whatever stream a training is started without: no file of it takes its number, and nothing is printed into one."""
    for number in range(3):
        run_dir = root / f"closed-{number}"
        command = [BINARY, "train", "--run-dir", run_dir, "--data", "synthetic", *TINY, "--steps", "2"]
        done = completed(["sh", "-c", f'exec "$@" {number}>&-', "sh", *command], 90, environment())
        check(done.returncode == 0, f"without descriptor {number}: {done}")
        lock = (run_dir / "lock").read_text()
        check("step" not in lock and len(lock.splitlines()) <= 1, f"lock without descriptor {number}:\n{lock}")


def check_one_rank_alone(root):
    """A configuration file that one host lacks: that rank says so, once."""
    (root / "train.cfg").write_text("data = synthetic\nmodel = gpt2-tiny\n")
    start = root / "start.sh"
    start.write_text(f'#!/bin/sh\nexec {BINARY} train --run-dir {root}/run --config {root}/$( [ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo no-)train.cfg\n')
    start.chmod(0o755)
    message = only_message(run_command(mpirun(2, [start]), 2))
    check("[rank 1]" in message and "no-train.cfg" in message, message)


with workspace() as folder:
    check_version()
    check_lost_output()
    check_closed_streams(pathlib.Path(folder))
    check_one_rank_alone(pathlib.Path(folder))
