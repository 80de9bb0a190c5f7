"""launch/supervise: which ends are restarted, from where, how often; signals, hosts, leftovers. Without a trainer: a stand-in for
the program plays the starts that a test wants."""

import fcntl
import importlib.machinery
import importlib.util
import io
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
if words[0] == "ck":
    folder = run / "checkpoints" / f"step_{int(words[1]):08d}"
    if folder.exists():  # damaged: as the trainer does
        folder.rename(f"{folder}.set-aside")
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    words = words[2:]
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


class SuperviseTest(unittest.TestCase):
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

    def play(self, text, *flags, train=()):
        done = subprocess.run(self.command(*flags, train=train), env=dict(os.environ, PLAY=text), capture_output=True, text=True, timeout=60)
        starts = (self.run_dir / "starts").read_text().splitlines()
        return done, starts

    def ledger(self):
        return [json.loads(line) for line in (self.run_dir / "ettr.jsonl").read_text().splitlines()]

    def test_done_at_once(self):
        done, starts = self.play("0")
        self.assertEqual((done.returncode, len(starts)), (0, 1), done.stderr)
        self.assertIn("--resume auto", starts[0])
        self.assertEqual([(line["event"], line.get("code")) for line in self.ledger()], [("launched", None), ("ended", 0)])

    def test_failures_are_restarted(self):
        for code in (1, 6, 7, 17, 75, 137, 139, 255):
            with self.subTest(code=code):
                self.run_dir = self.folder / f"after-{code}"
                done, starts = self.play(f"{code};0")
                self.assertEqual((done.returncode, len(starts)), (0, 2), done.stderr)
                self.assertIn(f"ended with {code}; start 2", done.stderr)

    def test_what_would_end_the_same_way_is_not(self):
        for code in (2, 3, 4, 5, 8):
            with self.subTest(code=code):
                self.run_dir = self.folder / f"after-{code}"
                done, starts = self.play(f"{'early ' if code == 2 else ''}{code};0")
                self.assertEqual((done.returncode, len(starts)), (code, 1), done.stderr)

    def test_a_checkpoint_that_cannot_be_saved_or_read_is_tried_again_where_one_had_been_saved(self):
        done, starts = self.play("ck 10 4;ck 20 4;4;4;0")
        self.assertEqual((done.returncode, len(starts)), (0, 5), done.stderr)
        self.assertIn("from step 20", done.stderr)

    def test_what_could_not_be_written_is_tried_again_once_the_run_had_begun(self):
        done, starts = self.play("2;early 2;0")
        self.assertEqual((done.returncode, len(starts)), (0, 3), done.stderr)
        self.run_dir = self.folder / "never-begun"
        done, starts = self.play("early 2;0")
        self.assertEqual((done.returncode, len(starts)), (2, 1), done.stderr)

    def test_a_directory_that_another_run_holds_is_left_alone(self):
        self.run_dir.mkdir(parents=True)
        (self.run_dir / "starts").touch()
        with (self.run_dir / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done, starts = self.play("0")
        self.assertEqual((done.returncode, len(starts)), (2, 0), done.stderr)
        self.assertIn("is in use by another run", done.stderr)
        self.assertFalse((self.run_dir / "ettr.jsonl").exists())

    def test_gives_up_without_progress(self):
        done, starts = self.play("6")
        self.assertEqual((done.returncode, len(starts)), (6, 4), done.stderr)
        self.assertIn("giving up after 3 restarts without a new checkpoint (newest: none)", done.stderr)
        self.assertEqual([line["attempt"] for line in self.ledger() if line["event"] == "ended"], [1, 2, 3, 4])

    def test_progress_counts_anew(self):
        done, starts = self.play("6;6;6;ck 10 6;6;6;ck 20 6;0")
        self.assertEqual((done.returncode, len(starts)), (0, 8), done.stderr)
        self.assertIn("from step 20", done.stderr)

    def test_a_step_that_is_saved_again_is_progress(self):
        done, starts = self.play("ck 1000 6;ck 1000 6;6;0", "--restarts", "1")
        self.assertEqual((done.returncode, len(starts)), (0, 4), done.stderr)

    def resumes(self, starts):
        """What --resume said at each start, every time once."""
        words = [start.split() for start in starts]
        self.assertTrue(all(start.count("--resume") <= 1 for start in words), starts)
        return [start[start.index("--resume") + 1] if "--resume" in start else None for start in words]

    def test_resume_that_is_given_holds_until_there_is_an_own_checkpoint(self):
        _, starts = self.play("6;ck 10 6;0", train=("--resume", "/elsewhere/step_5"))
        self.assertEqual(self.resumes(starts), ["/elsewhere/step_5", "/elsewhere/step_5", "auto"])

    def test_a_fresh_start_is_asked_for_once(self):
        _, starts = self.play("6;0", train=("--resume", "none"))
        self.assertEqual(self.resumes(starts), ["none", "auto"])

    def test_what_was_there_before_is_not_gone_on_with_unless_it_was_asked_for(self):
        """The first start dies before it could refuse the run that is there, or go back to an older checkpoint of it."""
        for asked in ("none", "here/step_5"):
            with self.subTest(resume=asked):
                self.run_dir = self.folder / asked.replace("/", "-")
                self.play("ck 500 0")
                _, starts = self.play("early 6;ck 6 6;0", train=("--resume", asked))
                self.assertEqual(self.resumes(starts)[1:], [asked, asked, "auto"])

    def test_resume_of_a_configuration_file(self):
        config = self.folder / "train.cfg"
        config.write_text("resume = /elsewhere/step_5 # from there\n")
        _, starts = self.play("6;ck 10 6;0", train=("--config", str(config)))
        self.assertEqual(self.resumes(starts), [None, None, "auto"])

    def test_a_job_that_slurm_starts_again_goes_on_with_its_own_checkpoint(self):
        for name, value in (("SLURM_JOB_ID", "7"), ("SLURM_RESTART_COUNT", "0")):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        self.play("6;ck 10 3", train=("--resume", "/elsewhere/step_5"))
        os.environ["SLURM_RESTART_COUNT"] = "1"
        _, starts = self.play("0", train=("--resume", "/elsewhere/step_5"))
        self.assertEqual(self.resumes(starts), ["/elsewhere/step_5", "/elsewhere/step_5", "auto"])

    def test_a_run_that_saves_nothing_is_warned_about(self):
        self.assertIn("without --checkpoint-every N only the end of the run is saved", self.play("0")[0].stderr)
        self.assertNotIn("warning", self.play("0", train=("--checkpoint-every", "5"))[0].stderr)

    def test_signals_stop_it(self):
        for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                self.run_dir = self.folder / number.name
                process = subprocess.Popen(self.command(), env=dict(os.environ, PLAY="sleep"), stderr=subprocess.PIPE, text=True)
                while not (self.run_dir / "ready").exists():
                    time.sleep(0.02)
                process.send_signal(number)
                _, errors = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 75, errors)
                self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 1)

    def on_two_ranks(self, *flags):
        """The command with two ranks, which mpirun starts; one is started without it."""
        command = self.command(*flags)
        command[command.index("-np") + 1] = "2"
        return command

    def wait_for(self, *names):
        end = time.monotonic() + 30
        while not all((self.run_dir / name).exists() for name in names):
            self.assertLess(time.monotonic(), end, f"{names} do not come")
            time.sleep(0.02)

    def test_a_request_for_what_is_recorded_is_passed_on(self):
        process = subprocess.Popen(self.on_two_ranks("--mpi-arg", "--oversubscribe"), env=dict(os.environ, PLAY="sleep"), stderr=subprocess.PIPE, text=True)
        self.wait_for("ready-0", "ready-1")
        process.send_signal(signal.SIGUSR2)
        self.wait_for("dumped-0", "dumped-1")
        self.assertIsNone(process.poll())  # the ranks go on
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, errors)
        self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 2)  # of two ranks, started once

    def host_file(self, text):
        file = self.folder / "hosts"
        file.write_text(text)
        return str(file)

    def test_a_host_file_is_handed_to_mpirun(self):
        """Of a host without slots mpirun counts the cores: both ranks have room on a machine that has two."""
        file = self.host_file("# this machine\nlocalhost\n")
        if supervise.cores_of_this_host() < 2:
            file = self.host_file("localhost slots=2\n")
        done = subprocess.run(self.on_two_ranks("--hostfile", file), env=dict(os.environ, PLAY="0"), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 2)

    def test_a_host_file_loses_only_lines_of_bad_hosts(self):
        file = self.host_file("# three\nme@a.lan slots=2 max-slots=4  # the first\nb.lan\nc.lan slots = 2\n")
        job = self.supervisor("-np", "3", "--hostfile", file)
        self.assertEqual(job.hosts, [("a.lan", 2), ("b.lan", supervise.cores_of_this_host()), ("c.lan", 2)])
        job.failures = {"a.lan": 1, "elsewhere": 5}
        self.assertEqual(job.host_words(), ["--hostfile", file])
        job.failures = {"b.lan": 2}
        flag, reduced = job.host_words()
        self.assertEqual(flag, "--hostfile")
        self.assertEqual(pathlib.Path(reduced).read_text(), "me@a.lan slots=2 max-slots=4  # the first\nc.lan slots = 2\n")

    def fake_scontrol(self, script):
        """An environment with this scontrol, in an allocation of three nodes."""
        tool = self.folder / "scontrol"
        tool.write_text(f'#!/bin/sh\necho "$@" >> {self.folder}/asked\n{script}\n')
        tool.chmod(0o755)
        return dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", SLURM_JOB_ID="42")

    def stopped_under_slurm(self, environment, play="sleep", code=75):
        process = subprocess.Popen(self.command("--requeue"), env=dict(environment, PLAY=play), stderr=subprocess.PIPE, text=True)
        while not (self.run_dir / "ready").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, code, errors)
        return errors

    def test_slurm_job_is_put_into_the_queue_again(self):
        errors = self.stopped_under_slurm(self.fake_scontrol("exit 0"))
        self.assertIn("job 42 is in the queue again", errors)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")
        done, starts = self.play("0", "--requeue")  # the job's next start: it goes on, and nothing is asked at its end
        self.assertEqual((done.returncode, len(starts)), (0, 2), done.stderr)
        self.assertIn("--resume auto", starts[1])
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")
        self.assertEqual([line.get("code") for line in self.ledger() if line["event"] == "ended"], [75, 0])

    def test_slurm_job_that_fails_when_it_is_asked_goes_on_too(self):
        self.stopped_under_slurm(self.fake_scontrol("exit 0"), play="sleep 137", code=137)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")

    def test_slurm_job_that_would_fail_again_is_not_requeued(self):
        self.stopped_under_slurm(self.fake_scontrol("exit 0"), play="sleep 5", code=5)
        self.assertFalse((self.folder / "asked").exists())

    def test_slurm_that_refuses_is_told(self):
        self.assertIn("scontrol requeue 42 ended with 1: not allowed", self.stopped_under_slurm(self.fake_scontrol("echo not allowed >&2; exit 1")))
        (self.run_dir / "ready").unlink()
        self.assertIn("this is no Slurm job", self.stopped_under_slurm(dict(os.environ)))
        (self.run_dir / "ready").unlink()
        (self.folder / "scontrol").unlink()
        self.assertIn("scontrol: No such file", self.stopped_under_slurm(dict(os.environ, SLURM_JOB_ID="42")))

    def test_hosts_of_an_allocation(self):
        environment = self.fake_scontrol("printf 'n1\\nn2\\nn3\\n'")
        os.environ["PATH"], path = environment["PATH"], os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        hosts = supervise.hosts_of_slurm({"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "8(x2),4"})
        self.assertEqual(hosts, [("n1", 8), ("n2", 8), ("n3", 4)])
        self.assertEqual((self.folder / "asked").read_text(), "show hostnames n[1-3]\n")
        self.assertIsNone(supervise.hosts_of_slurm({}))
        os.environ.update(SLURM_JOB_NODELIST="n[1-3]", SLURM_TASKS_PER_NODE="8(x3)")
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE")])
        job = self.supervisor("-np", "16")
        self.assertNotIn("--hosts", job.command(attempt=1))
        job.failures = {"n2": 2}
        self.assertEqual(job.command(attempt=1)[job.command(attempt=1).index("--hosts") + 1], "n1:8,n3:8")

    def test_no_orphans(self):
        self.play("orphan 6;0")
        self.assertEqual([pid for pid in supervise.processes_with(f"PLAY=orphan 6;0")], [])

    def test_messages_that_nobody_reads_hold_nothing_up(self):
        read, write = os.pipe()
        process = subprocess.Popen(self.command(), env=dict(os.environ, PLAY="noisy 6;noisy 0"), stderr=write)
        os.close(write)
        os.close(read)
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in supervise.processes_with("PLAY=noisy 6;noisy 0")])
        self.assertEqual(process.wait(timeout=30), 0)
        self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 2)

    def test_no_shared_memory_of_its_jobs_is_left(self):
        other = pathlib.Path("/dev/shm/vader_segment.test.0.4e.0")
        other.touch()
        self.addCleanup(other.unlink)
        done, _ = self.play("segment 2")
        self.assertIn("removing /dev/shm/vader_segment.test.0.4d.0, which the launcher left behind", done.stderr)
        self.assertFalse(pathlib.Path("/dev/shm/vader_segment.test.0.4d.0").exists())
        self.assertTrue(other.exists())

    def test_its_own_death_ends_the_run(self):
        process = subprocess.Popen(self.command(), env=dict(os.environ, PLAY="sleep"), stderr=subprocess.DEVNULL)
        while not (self.run_dir / "ready").exists():
            time.sleep(0.02)
        process.kill()
        process.wait()
        end = time.monotonic() + 20
        while supervise.processes_with("PLAY=sleep") and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(supervise.processes_with("PLAY=sleep"), [])

    def test_asked_twice_it_ends_at_once(self):
        process = subprocess.Popen(self.on_two_ranks(), env=dict(os.environ, PLAY="deaf"), stderr=subprocess.PIPE, text=True)
        while not (self.run_dir / "ready").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)  # two that come together are one
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertLess(time.monotonic() - asked, 4)  # not for as long as launch/run would wait for ranks that stay

    def test_hosts_of_failures_are_seen(self):
        lines = ["sidestream [rank 0]: all_reduce (operation 3): not finished after 600 ms; missing: rank 1 on node7 (last started)",
                 "sidestream [rank 0]: barrier: rank 2 on node8.lan has died: its process is gone",
                 "mpirun noticed that process rank 3 with PID 0 on node node9 exited on signal 9 (Killed).",
                 "sidestream [rank 2]: starting MPI: not finished after 9 ms; missing: local rank 1 on node10 (has not come to it).",
                 "ssh: connect to host node11 port 22: No route to host",
                 "ssh: Could not resolve hostname node12.lan: Name or service not known",
                 "  Remote daemon: [[41413,0],1] on node node13",
                 "sidestream [rank 1 on node14]: step 5, data: not finished after 3000 ms, this rank itself hangs."]
        found = [name for line in lines for name in supervise.hosts_blamed(line)]
        self.assertEqual(found, ["node7", "node8.lan", "node9", "node10", "node11", "node12.lan", "node13", "node14"])

    def test_bad_hosts_are_left_out_while_there_are_spares(self):
        hosts = [("a", 2), ("b", 2), ("c", 2)]
        self.assertEqual(supervise.pick_hosts(hosts, {}, 4), [("a", 2), ("b", 2)])
        self.assertEqual(supervise.pick_hosts(hosts, {"a": 1}, 4), [("a", 2), ("b", 2)])
        self.assertEqual(supervise.pick_hosts(hosts, {"a": 2}, 4), [("b", 2), ("c", 2)])
        self.assertEqual(supervise.pick_hosts(hosts, {"a": 2, "b": 3}, 4), [("c", 2), ("a", 2)])

    def supervisor(self, *words):
        """In this process; signals keep their handlers."""
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)}
        self.addCleanup(lambda: [signal.signal(number, handler) for number, handler in previous.items()])
        return supervise.Supervisor(supervise.Options([*words, "--", "train"]))

    def test_a_host_that_is_named_twice_makes_way_for_a_spare(self):
        job = self.supervisor("-np", "2", "--hosts", "a.lan:1,b.lan:1,127.0.0.1:1")
        for message in (b"ssh: connect to host a port 22: No route to host\n", b"sidestream [rank 0 on a.lan]: this rank itself hangs\n"):
            self.assertEqual(job.command(attempt=1)[job.command(attempt=1).index("--hosts") + 1], "a.lan:1,b.lan:1")
            job.blamed = set()
            job.watch_messages(io.BytesIO(message))
            job.note_hosts()
        self.assertEqual(job.command(attempt=1)[job.command(attempt=1).index("--hosts") + 1], "b.lan:1,127.0.0.1:1")
        self.assertEqual(supervise.known_host("localhost", job.hosts), "127.0.0.1")
        self.assertEqual(supervise.known_host("elsewhere", job.hosts), "elsewhere")

    def test_slurm_job_that_is_asked_between_two_starts_is_requeued(self):
        process = subprocess.Popen(self.command("--requeue", "--backoff", "20"), env=dict(self.fake_scontrol("exit 0"), PLAY="6"),
                                   stderr=subprocess.PIPE, text=True)
        with process.stderr as messages:
            for line in messages:
                if "start 2 in" in line:
                    process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(timeout=30), 75)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")

    def test_run_directory_is_the_trainers(self):
        config = self.folder / "train.cfg"
        config.write_text("steps = 3\nrun-dir = runs/from-file  # here\n")
        self.assertEqual(str(supervise.run_directory(["train", "--config", str(config)])), "runs/from-file")
        self.assertEqual(str(supervise.run_directory(["train", "--config", str(config), "--run-dir=runs/b"])), "runs/b")
        self.assertEqual(str(supervise.run_directory(["train"])), "runs/default")
        config.write_text("run-dir = runs/a#1\n")
        self.assertEqual(str(supervise.run_directory(["train", "--config", str(config)])), "runs/a#1")

    def test_bad_calls(self):
        for words in (["-np", "0", "--", "train"], ["-np", "2", "--", "verify"], ["-np", "2", "--hosts", "a:x", "--", "train"],
                      ["--frobnicate", "--", "train"], ["-np", "2", "--hostfile", "/nowhere", "--", "train"]):
            done = subprocess.run([ROOT / "launch/supervise", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, words)

    def test_options_are_read_as_nsys_collect_reads_them(self):
        for words, message in ((["-np", "0", "--", "train"], "-np: expected a number from 1, found '0'"),
                               (["-np", "many", "--", "train"], "-np: expected a number from 1, found 'many'"),
                               (["--", "train"], "-np is missing: how many ranks?"),
                               (["-np", "2", "--hosts", "--", "train"], "--hosts needs a value"),
                               (["-np", "2", "--frames", "3", "--", "train"], "unknown option '--frames'; what the ranks should do comes after --")):
            for script in ("supervise", "nsys-collect"):
                done = subprocess.run([ROOT / "launch" / script, *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, words)
                self.assertTrue(done.stderr.startswith(f"{script}: {message}"), done.stderr)

    def test_values_that_look_like_flags_are_passed_on(self):
        options = supervise.Options(["--mpi-arg", "--mca", "-np", "2", "--mpi-arg", "btl", "--", "train", "--steps", "3"])
        self.assertEqual(options.run_words, ["--mpi-arg", "--mca", "--mpi-arg", "btl"])
        self.assertEqual(options.command, ["train", "--steps", "3"])


if __name__ == "__main__":
    unittest.main()
