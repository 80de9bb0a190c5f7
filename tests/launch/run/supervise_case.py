"""launch/supervise without a trainer: a stand-in for the program plays the starts that a test wants."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
sys.dont_write_bytecode = True
from running import completed, running  # noqa: E402

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests may ignore it, and what they start would, too
loader = importlib.machinery.SourceFileLoader("supervise", str(ROOT / "launch/supervise"))
supervise = importlib.util.module_from_spec(importlib.util.spec_from_loader("supervise", loader))
loader.exec_module(supervise)

# Plays line N of PLAY at start N: an exit code, "ck STEP CODE" (a checkpoint first), "sleep", "orphan CODE",
# "noisy CODE", "segment JOB CODE".
PROGRAM = """#!/usr/bin/env python3
import os, pathlib, signal, subprocess, sys, time
play = os.environ["PLAY"].split(";")
run = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1])
run.mkdir(exist_ok=True)
attempt = int(os.environ["SIDESTREAM_ATTEMPT"])
(run / "starts").open("a").write(" ".join(sys.argv[1:]) + "\\n")
words = play[min(attempt, len(play)) - 1].split()
if words[0] == "early":  # dies before it has the run directory
    sys.exit(int(words[1]))
(run / "config.cfg").write_text("")
(run / "lock").touch()
if words[0] == "ck":
    folder = run / "checkpoints" / f"step_{int(words[1]):08d}"
    if folder.exists():  # damaged: as the trainer does
        folder.rename(f"{folder}.set-aside")
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    words = words[2:]
if words[0] == "replaced":  # another run's folder has come in the place of its own
    run.rename(f"{run}.aside")
    run.mkdir()
    (run / "starts").touch()
    (run / "config.cfg").write_text("")
    (run / "ettr.jsonl").write_text('{"event": "started", "attempt": 1}\\n')
    words = words[1:]
if words[0] == "orphan":
    subprocess.Popen(["sleep", "60"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    words = words[1:]
if words[0] == "noisy":  # more than a pipe holds
    sys.stderr.write(("x" * 79 + "\\n") * 4000)
    words = words[1:]
if words[0] == "segment":  # as of a launcher that was killed: a rank of this job ran, its shared memory is there
    rank = subprocess.Popen(["sleep", "60"], env=dict(os.environ, PMIX_NAMESPACE=words[1]), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    open(f"/dev/shm/vader_segment.test.0.{int(words[1]):x}.0", "w").close()
    time.sleep(8)  # the supervisor looks after 1, 3 and 7 s, and cannot be seen to look
    rank.kill()
    words = words[2:]
if words[0] == "deaf":
    for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    (run / "ready").touch()
    time.sleep(60)
if words[0] == "sleep":
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(int(words[1]) if len(words) > 1 else 75))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(75))
    signal.signal(signal.SIGUSR2, lambda *_: (run / f"dumped-{os.environ.get('OMPI_COMM_WORLD_RANK', 0)}").touch())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1, signal.SIGUSR2})  # launch/run blocks them until the ranks can note them
    (run / "ready").touch()
    (run / f"ready-{os.environ.get('OMPI_COMM_WORLD_RANK', 0)}").write_text(str(os.getpid()))
    time.sleep(60)
sys.stderr.write("".join(word + " " for word in words[1:]) + "\\n")
sys.exit(int(words[0]))
"""


class SuperviseCase(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="sidestream-supervise-")
        self.folder = pathlib.Path(self.scratch.name)
        self.run_dir = self.folder / "run"
        program = self.folder / "sidestream"
        program.write_text(PROGRAM)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def tearDown(self):
        self.scratch.cleanup()

    def command(self, *flags, train=()):
        return [str(ROOT / "launch/supervise"), "-np", "1", "--build", str(self.folder), "--backoff", "0.05", *flags, "--", "train", "--run-dir",
                str(self.run_dir), *train]

    def on_two_ranks(self, *flags):
        """The command with two ranks, which mpirun starts; one is started without it."""
        command = self.command(*flags)
        command[command.index("-np") + 1] = "2"
        return command

    def play(self, text, *flags, train=()):
        done = completed(self.command(*flags, train=train), 60, self.environment(os.environ, text), stderr=subprocess.PIPE)
        starts = (self.run_dir / "starts").read_text().splitlines()
        return done, starts

    def environment(self, env, play):
        return env | {"PLAY": play, "FOLDER": str(self.folder)}

    def processes(self):
        """That this test has started and that still run; no other checkout's."""
        return supervise.processes_with(f"FOLDER={self.folder}")

    def ledger(self):
        return [json.loads(line) for line in (self.run_dir / "ettr.jsonl").read_text().splitlines()]

    def started(self, command, play, env=None, **how):
        """Goes on beside the test, which may read its messages; ended with the test."""
        how = {"stdout": None, "stderr": subprocess.PIPE} | how
        return self.enterContext(running(command, self.environment(env or os.environ, play), **how))

    def wait_for(self, process, *names):
        """Until the ranks have made these files."""
        end = time.monotonic() + 30
        while not all((self.run_dir / name).exists() for name in names):
            self.assertIsNone(process.poll(), f"it ended before {names} came")
            self.assertLess(time.monotonic(), end, f"{names} do not come")
            time.sleep(0.02)

    def supervisor(self, *words):
        """In this process; signals keep their handlers."""
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)}
        self.addCleanup(lambda: [signal.signal(number, handler) for number, handler in previous.items()])
        return supervise.Supervisor(supervise.Options([*words, "--", "train"]))
