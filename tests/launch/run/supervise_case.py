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
for caught in (signal.SIGINT, signal.SIGHUP):  # whoever started the tests may ignore them, and what they start would, too
    signal.signal(caught, signal.SIG_DFL)
loader = importlib.machinery.SourceFileLoader("supervise", str(ROOT / "launch/supervise"))
supervise = importlib.util.module_from_spec(importlib.util.spec_from_loader("supervise", loader))
sys.dont_write_bytecode = True
loader.exec_module(supervise)

# Plays line N of PLAY at start N: an exit code, "ck STEP CODE" (a checkpoint first), "sleep", "orphan CODE",
# "noisy CODE", "segment CODE".
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
if words[0] == "segment":  # as of a launcher that was killed: a rank of job 77 ran, its shared memory is there
    rank = subprocess.Popen(["sleep", "60"], env=dict(os.environ, PMIX_NAMESPACE="77"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    open("/dev/shm/vader_segment.test.0.4d.0", "w").close()
    time.sleep(2.5)
    rank.kill()
    words = words[1:]
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
    (run / f"ready-{os.environ.get('OMPI_COMM_WORLD_RANK', 0)}").touch()
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
        done = subprocess.run(self.command(*flags, train=train), env=dict(os.environ, PLAY=text), capture_output=True, text=True, timeout=60)
        starts = (self.run_dir / "starts").read_text().splitlines()
        return done, starts

    def ledger(self):
        return [json.loads(line) for line in (self.run_dir / "ettr.jsonl").read_text().splitlines()]

    def wait_for(self, *names):
        end = time.monotonic() + 30
        while not all((self.run_dir / name).exists() for name in names):
            self.assertLess(time.monotonic(), end, f"{names} do not come")
            time.sleep(0.02)

    def supervisor(self, *words):
        """In this process; signals keep their handlers."""
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)}
        self.addCleanup(lambda: [signal.signal(number, handler) for number, handler in previous.items()])
        return supervise.Supervisor(supervise.Options([*words, "--", "train"]))
