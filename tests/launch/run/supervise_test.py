"""launch/supervise: which ends are restarted, from where, how often; how it is called."""

import fcntl
import os
import re
import subprocess
import unittest

from supervise_case import ROOT, SuperviseCase, completed, supervise  # puts the scripts on the path
from train_call import run_directory


class SuperviseTest(SuperviseCase):
    def test_help_that_nobody_reads_gives_no_traceback(self):
        call = f"'{ROOT / 'launch/supervise'}' --help"
        for shell, code, words in ((f"{call} | exec true; exit ${{PIPESTATUS[0]}}", 0, ""),
                                   (f"{call} >/dev/full", 1, "supervise: cannot write to standard output: No space left on device\n")):
            done = completed(["bash", "-c", shell], 30, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (code, words))

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

    def test_a_run_that_has_come_in_its_place_is_left_alone(self):
        for number, text in enumerate(("replaced 4;0", "ck 10 1;replaced 4;0", "replaced 1;0")):
            with self.subTest(play=text):
                self.run_dir = self.folder / f"run-{number}"
                done, starts = self.play(text)
                self.assertEqual((done.returncode, len(starts)), (int(text.rsplit(";", 1)[0][-1]), 0), done.stderr)
                self.assertIn("holds another run now, which is left alone", done.stderr)
                self.assertEqual(self.ledger(), [{"event": "started", "attempt": 1}])

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

    def test_it_waits_twice_as_long_each_time_until_there_is_progress(self):
        done, starts = self.play("6;6;6;ck 10 6;6;0")
        self.assertEqual((done.returncode, len(starts)), (0, 6), done.stderr)
        self.assertEqual(re.findall(r"; start \d in (\S+) s", done.stderr), ["0.05", "0.1", "0.2", "0.05", "0.05"])
        job = self.supervisor("-np", "1", "--backoff", "40")
        job.rest, job.start, rests = lambda pause: rests.append(pause), lambda attempt: 6, []
        self.assertEqual(job.start_again_and_again(), 6)
        self.assertEqual(rests, [40, 60, 60])  # a minute at most

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
        done, starts = self.play("6;ck 10 6;0", train=("--resume", "/elsewhere/step_5"))
        self.assertEqual(self.resumes(starts), ["/elsewhere/step_5", "/elsewhere/step_5", "auto"])
        self.assertRegex(done.stderr, "(?s)start 2 in .*from /elsewhere/step_5\n.*start 3 in .*from step 10\n")

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

    def test_run_directory_is_the_trainers(self):
        config = self.folder / "train.cfg"
        config.write_text("steps = 3\nrun-dir = runs/from-file  # here\n")
        self.assertEqual(str(run_directory(["train", "--config", str(config)])), "runs/from-file")
        self.assertEqual(str(run_directory(["train", "--config", str(config), "--run-dir=runs/b"])), "runs/b")
        self.assertEqual(str(run_directory(["train"])), "runs/default")
        config.write_text("run-dir = runs/a#1\n")
        self.assertEqual(str(run_directory(["train", "--config", str(config)])), "runs/a#1")
        config.write_bytes(b"\xef\xbb\xbfrun-dir = runs/of-windows\r\nsteps = 3\r\n")
        self.assertEqual(str(run_directory(["train", "--config", str(config)])), "runs/of-windows")
        self.assertEqual(str(run_directory(["train", "--config", str(self.folder)])), "runs/default")

    def play_own(self, text):
        """A program of one's own, which is told what comes after -- and nothing else."""
        command = [str(ROOT / "launch/supervise"), "-np", "1", "--program", str(self.folder / "sidestream"), "--run-dir", str(self.run_dir),
                   "--backoff", "0.05", "--", "300", "--run-dir", str(self.run_dir)]
        done = completed(command, 60, os.environ | {"PLAY": text}, stderr=subprocess.PIPE)
        return done, (self.run_dir / "starts").read_text().splitlines()

    def test_a_program_of_ones_own_is_started_again_as_it_was(self):
        done, starts = self.play_own("6;ck 100 139;0")
        self.assertEqual((done.returncode, starts), (0, [f"300 --run-dir {self.run_dir}"] * 3), done.stderr)
        self.assertRegex(done.stderr, "(?s)ended with 6; start 2 in .*from the beginning\n.*ended with 139; start 3 in .*from step 100\n")
        self.assertNotIn("warning", done.stderr)
        self.assertEqual([line.get("code") for line in self.ledger() if line["event"] == "ended"], [6, 139, 0])

    def test_a_program_that_saves_elsewhere_is_told(self):
        command = [ROOT / "launch/supervise", "-np", "1", "--program", "/bin/true", "--run-dir", self.run_dir, "--"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("is it the folder that the program gives its ModuleCheckpoint?", done.stderr)
        self.assertNotIn("ModuleCheckpoint", self.play_own("0")[0].stderr)

    def test_a_folder_that_cannot_be_made_is_refused(self):
        (self.folder / "file").touch()
        done = subprocess.run([ROOT / "launch/supervise", "-np", "1", "--program", "/bin/true", "--run-dir", self.folder / "file/run", "--"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, "cannot make" in done.stderr), (2, True), done.stderr)

    def test_a_program_of_ones_own_that_cannot_go_on_is_given_up(self):
        done, starts = self.play_own("5;0")
        self.assertEqual((done.returncode, len(starts)), (5, 1), done.stderr)
        self.run_dir = self.folder / "refused"
        done, starts = self.play_own("early 2;0")
        self.assertEqual((done.returncode, len(starts)), (2, 1), done.stderr)
        self.run_dir = self.folder / "tried"
        done, starts = self.play_own("2;0")  # it had taken the folder
        self.assertEqual((done.returncode, len(starts)), (0, 2), done.stderr)

    def test_bad_calls(self):
        two = ["-np", "2"]
        no_folder = "--program needs --run-dir, the folder in which the program saves"
        for words, message in ((["-np", "0", "--", "train"], "-np: expected a number from 1, found '0'"),
                               ([*two, "--", "verify"], "nothing to supervise: launch/supervise -np 2 -- train"),
                               ([*two, "--hosts", "a:x", "--", "train"], "--hosts: expected NAME or NAME:SLOTS, found 'a:x'"),
                               (["--frobnicate", "--", "train"], "unknown option '--frobnicate'"),
                               ([*two, "--hostfile", "/nowhere", "--", "train"], "--hostfile: cannot read '/nowhere'"),
                               ([*two, "--hostfile", "/tmp", "--", "train"], "--hostfile: cannot read '/tmp': Is a directory"),
                               ([*two, "--program", "/bin/true", "--"], no_folder),
                               ([*two, "--program", "/bin/true", "--run-dir", "", "--"], no_folder),
                               ([*two, "--run-dir", "runs/a", "--", "train"], "--run-dir before -- is for --program")):
            with self.subTest(words=words):
                done = subprocess.run([ROOT / "launch/supervise", *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith(f"supervise: {message}"), done.stderr)

    def test_options_are_read_as_nsys_collect_reads_them(self):
        for words, message in ((["-np", "0", "--", "train"], "-np: expected a number from 1, found '0'"),
                               (["-np", "many", "--", "train"], "-np: expected a number from 1, found 'many'"),
                               (["--", "train"], "-np is missing: how many ranks?"),
                               (["-np", "2", "--hosts", "--", "train"], "--hosts needs a value"),
                               (["--hosts", "-np", "2", "--", "train"], "--hosts needs a value"),
                               (["-np", "2", "--frames", "3", "--", "train"], "unknown option '--frames'; what the ranks should do comes after --")):
            for script in ("supervise", "nsys-collect"):
                done = subprocess.run([ROOT / "launch" / script, *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, words)
                self.assertTrue(done.stderr.startswith(f"{script}: {message}"), done.stderr)

    def test_values_that_look_like_flags_are_passed_on(self):
        options = supervise.Options(["--mpi-arg", "--mca", "-np", "2", "--mpi-arg", "btl", "--", "train", "--steps", "3"])
        self.assertEqual(options.run_words, ["--mpi-arg", "--mca", "--mpi-arg", "btl"])
        self.assertEqual(options.run.command, ["train", "--steps", "3"])


if __name__ == "__main__":
    unittest.main()
