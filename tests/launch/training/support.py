"""What the end-to-end tests share: small data, training runs in temporary folders, their metrics."""

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from corpus import write_corpus
from running import completed, end_all, running  # noqa: F401: tests take it from here

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


def faulty_environment():
    """In which --inject is allowed."""
    return environment() | {"SIDESTREAM_FAULT_INJECTION": "1"}


def run(ranks, command, expect=0):
    """Runs the program; returns its output. Any other exit code than `expect` fails the test and shows the output."""
    return run_command(mpirun(ranks, command), expect)


def run_command(command, expect=0):
    """The same for a whole command line."""
    done = completed(command, TIMEOUT_S, environment())
    if done.returncode != expect:
        sys.exit(f"expected exit code {expect}, found {done.returncode} from\n  {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def train(ranks, run_dir, flags, expect=0):
    return run(ranks, [BINARY, "train", "--run-dir", run_dir, *flags], expect)


ATTEMPTS = 6


def undisturbed(what, attempt):
    """Calls attempt(number) until it finds nothing wrong: other work of the machine makes ranks late at random, so that one undisturbed
    run has to show what is to be shown. After a fault one good run may be luck: then two in a row have to show it. attempt returns what
    is wrong, or None; its own checks fail at once."""
    found = []
    for number in range(ATTEMPTS):
        found.append(attempt(number))
        if len(found) > 1 or found[-1] is not None:
            print(f"{what}, attempt {number + 1}: {found[-1] or 'as expected'}", flush=True)
        if found == [None] or found[-2:] == [None, None]:
            return
    sys.exit(f"{what}: no two attempts in a row of {ATTEMPTS} without a fault:\n" + "\n".join(map(str, found)))


def messages_of(output):
    """The program's own lines of standard error, but for those that say when a planted fault happens."""
    return [line for line in output.splitlines() if line.startswith("sidestream") and not line.startswith("sidestream: planted fault: ")]


def only_message(output, name=""):
    messages = messages_of(output)
    check(len(messages) == 1, f"{name}: expected one message, found {messages}\n{output}")
    return messages[0]


def expect(code, words, ranks, flags, prefix=()):
    """A training that is refused: this exit code, and one message that has the words. `prefix` starts the command."""
    done = completed([*prefix, *mpirun(ranks, [BINARY, "train", *flags])], 60, environment())
    check(done.returncode == code, f"{flags}: expected exit code {code}, found {done.returncode}\n{done.stdout}")
    message = only_message(done.stdout, flags)
    for word in words:
        check(word in message, f"{flags}: expected '{word}' in: {message}")


def side_by_side(root, checks, *arguments):
    """Calls check(folder of its own below root, *arguments) for each of them, four at a time: a refused call waits for its launcher
    most of its time. The first fault ends the test."""
    def call(check):
        folder = pathlib.Path(root) / check.__name__
        folder.mkdir()
        check(folder, *arguments)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        try:
            for done in [pool.submit(call, check) for check in checks]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise


def wait_until(process, has_happened, what, limit_s=120):
    """Looks again and again, as long as the process lives."""
    deadline = time.monotonic() + limit_s
    while True:
        code = process.poll()  # what it did before it ended has happened
        if has_happened():
            return
        check(code is None, f"ended with {code} before this: {what}")
        check(time.monotonic() < deadline, f"not after {limit_s} s: {what}")
        time.sleep(0.005)


def wait_for_step(process, run_dir, step):
    """Until the run has logged this step."""
    file = pathlib.Path(run_dir) / "metrics.jsonl"
    wait_until(process, lambda: file.exists() and file.read_text().count("\n") >= step, f"{run_dir}: step {step}")


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


def catches_usr1(pid):
    """Whether this process has got as far as noting a request; before that it would die of one."""
    with contextlib.suppress(OSError):
        caught = re.search(r"SigCgt:\s+(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
        return caught is not None and bool(int(caught[1], 16) >> signal.SIGUSR1 - 1 & 1)
    return False


def metrics(run_dir):
    with open(pathlib.Path(run_dir) / "metrics.jsonl") as lines:
        return [json.loads(line) for line in lines]


def losses(run_dir):
    return [line["loss"] for line in metrics(run_dir)]


def losses_apart(run_dir, other):
    """The most by which a step of the one has another loss than that of the other."""
    return max(abs(a - b) for a, b in zip(losses(run_dir), losses(other), strict=True))


def norms_apart(run_dir, other):
    """The most by which a step of the one has another norm of its gradients than that of the other, as a share of it. AdamW, and whatever
    --grad-clip has shortened, learn the same from gradients of any scale: losses cannot tell a sum from a mean."""
    pairs = zip(metrics(run_dir), metrics(other), strict=True)
    return max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in pairs)


def check_near(what, run_dir, other, apart, norms=1e-4):
    """The losses of all steps are as near each other as `apart`, and the norms of their gradients as this share of them."""
    found = losses_apart(run_dir, other), norms_apart(run_dir, other)
    check(found[0] <= apart, f"{what}: losses differ by {found[0]}")
    check(found[1] <= norms, f"{what}: norms of gradients differ by {found[1]} of them")


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
