"""What the end-to-end tests share: small data, training runs in temporary folders, their metrics."""

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from corpus import write_corpus

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("SIDESTREAM_BUILD", ROOT / "build/release"))
BINARY = BUILD / "sidestream"
TIMEOUT_S = 240
SKIPPED = 77  # how a test that cannot be made here ends: ctest reports it as skipped

# Deterministic, a few milliseconds a step, and with everything that the large models have.
TINY = ["--model", "gpt2-micro", "--sequence-length", "32", "--threads", "1", "--log-every", "1", "--eval-every", "0"]
# Where what computing takes and needs is looked at: large enough to show beside everything else.
SMALL = ["--model", "gpt2-tiny", *TINY[2:]]


def mpirun(ranks, command):
    if ranks == 1:
        return [str(word) for word in command]
    head = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    return head + [str(word) for word in command]


def environment():
    env = dict(os.environ)
    if "SIDESTREAM_TEST_ON_GPU" not in env:  # host ranks are what most tests compare, on a machine with GPUs too
        env["CUDA_VISIBLE_DEVICES"] = ""
    if os.getuid() == 0:
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return env


def run(ranks, command, expect=0):
    """Runs the program; returns its output. Any other exit code than `expect` fails the test and shows the output."""
    return run_command(mpirun(ranks, command), expect)


def run_command(command, expect=0):
    """The same for a whole command line."""
    done = subprocess.run(command, env=environment(), text=True, errors="replace", timeout=TIMEOUT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != expect:
        sys.exit(f"expected exit code {expect}, found {done.returncode} from\n  {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def train(ranks, run_dir, flags, expect=0):
    return run(ranks, [BINARY, "train", "--run-dir", run_dir, *flags], expect)


ATTEMPTS = 4


def undisturbed(what, attempt):
    """Calls attempt(number) until it finds nothing wrong: other work of the machine makes ranks late at random, so that one
    undisturbed run has to show what is to be shown. attempt returns what is wrong, or None; its own checks fail at once."""
    faults = []
    for number in range(ATTEMPTS):
        fault = attempt(number)
        if fault is None:
            return
        print(f"{what}, attempt {number + 1}: {fault}", flush=True)
        faults.append(fault)
    sys.exit(f"{what}: {ATTEMPTS} attempts, each with a fault:\n" + "\n".join(map(str, faults)))


def expect(code, words, ranks, flags, prefix=()):
    """A training that is refused: this exit code, and one message that has the words. `prefix` starts the command."""
    done = subprocess.run([*prefix, *mpirun(ranks, [BINARY, "train", *flags])], env=environment(), text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("sidestream")]
    check(done.returncode == code, f"{flags}: expected exit code {code}, found {done.returncode}\n{done.stdout}")
    check(len(lines) == 1, f"{flags}: expected one message, found {lines}\n{done.stdout}")
    for word in words:
        check(word in lines[0], f"{flags}: expected '{word}' in: {lines[0]}")


def side_by_side(root, checks, *arguments):
    """Calls check(folder of its own below root, *arguments) for each of them, four at a time: a refused call waits for its launcher
    most of its time. The first fault ends the test."""
    def call(check):
        folder = pathlib.Path(root) / check.__name__
        folder.mkdir()
        check(folder, *arguments)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(call, check) for check in checks]:
            done.result()


def wait_for_step(process, run_dir, step):
    """Until the run has logged this step."""
    deadline = time.monotonic() + 120
    file = pathlib.Path(run_dir) / "metrics.jsonl"
    while not file.exists() or file.read_text().count("\n") < step:
        check(process.poll() is None and time.monotonic() < deadline, f"{run_dir}: the run does not get to step {step}")
        time.sleep(0.005)


def processes_of_ranks(run_dir, rank=None, program=BINARY):
    """Of the training in this run directory, on this machine: of all its ranks, or of one."""
    wanted = None if rank is None else f"OMPI_COMM_WORLD_RANK={rank}".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0] != str(program).encode() or str(run_dir).encode() not in words:
                continue
            if wanted is None or wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def metrics(run_dir):
    with open(pathlib.Path(run_dir) / "metrics.jsonl") as lines:
        return [json.loads(line) for line in lines]


def losses(run_dir):
    return [line["loss"] for line in metrics(run_dir)]


def checkpoint(run_dir, step):
    return pathlib.Path(run_dir) / "checkpoints" / f"step_{step:08d}"


def make_data(folder):
    """A data folder of byte tokens."""
    with tempfile.TemporaryDirectory() as text:
        write_corpus(pathlib.Path(text) / "corpus")
        run(1, [BINARY, "prepare", "--input", pathlib.Path(text) / "corpus", "--output", folder, "--val-fraction", "0.2"])
    return folder


@functools.cache
def may_mount():
    """Whether this user can mount file systems in a namespace of its own: root can, but not in every container."""
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True).returncode == 0


def require_mounts():
    if not may_mount():
        print("skipped: this user may not mount file systems")
        sys.exit(SKIPPED)


def with_own_shared_memory(command, left=None):
    """The command with a /dev/shm of its own where this user may make one, so that nothing of it stays in the machine's: not even
    of a launcher that is killed. `left`: a file for the names that are there at the end."""
    if not may_mount():
        return command
    script = 'mount -t tmpfs tmpfs /dev/shm && '
    script += 'exec "$@"' if left is None else f'"$@"; code=$?; ls -A /dev/shm > {left}; exit $code'
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]


def workspace():
    return tempfile.TemporaryDirectory(prefix="sidestream-test-")


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)
