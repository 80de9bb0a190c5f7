"""Hosts that are network namespaces of this machine (tests/comm/run_in_namespaces.sh), for tests of the launchers.

What that script takes for mpirun starts the test's file again, in the first host, which hands the words that make hosts of the namespaces
on to a launcher."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
from support import SKIPPED, completed, faulty_environment  # noqa: E402

NAMESPACES = ROOT / "tests/comm/run_in_namespaces.sh"
TIMEOUT_S = 150


def may_make_namespaces():
    name = f"sidestream-probe-{os.getpid()}"
    probe = f"ip netns add {name} && ip netns del {name} && unshare --mount --uts --net sh -c 'mount -t tmpfs tmpfs /dev/shm'"
    return shutil.which("ip") and subprocess.run(["sh", "-c", probe], stderr=subprocess.DEVNULL, check=False).returncode == 0


def is_inside():
    """Whether this process is the one in the first host."""
    return len(sys.argv) > 1 and sys.argv[1] == "-np"


def hosts_and_flags():
    """Inside: a:1,b:1 and what mpirun has to be told, as flags of a launcher; then the words of the test."""
    words = sys.argv[1:]
    at = words.index("--host")
    own = words.index("--end-of-flags")
    flags = [word for flag in words[at + 2:own] for word in ("--mpi-arg", flag)]
    return ["--hosts", words[at + 1], *flags], words[own + 1:]


def run_inside(scratch, ranks, words, variables=None):
    """Starts the test's file again with these words. (exit code, what was said.) One that takes too long is asked to end, and has the
    time to remove the hosts that it made."""
    launcher = scratch / "launcher"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{pathlib.Path(sys.argv[0]).resolve()}" "$@"\n')
    launcher.chmod(0o700)
    command = ["bash", NAMESPACES, launcher, *ranks, "--end-of-flags", *words]
    env = faulty_environment() | (variables or {})
    done = completed(command, TIMEOUT_S, env, grace_s=20)
    return done.returncode, done.stdout


def main(inside, test):
    """Of a test: `inside` never returns, `test` gets a folder of its own."""
    if is_inside():
        inside()
    if not may_make_namespaces():
        print("this user may not make namespaces, or there is no ip(8)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="sidestream-namespaces-") as scratch:
        test(pathlib.Path(scratch))
    print("passed")
