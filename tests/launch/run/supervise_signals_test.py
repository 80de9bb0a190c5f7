"""launch/supervise is asked to stop, or dies, and leaves nothing behind."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

from supervise_case import SuperviseCase, supervise


class SuperviseSignalsTest(SuperviseCase):
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

    def test_what_was_ignored_at_the_start_stays_ignored(self):
        process = subprocess.Popen(self.on_two_ranks(), env=dict(os.environ, PLAY="sleep"), stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # as nohup does
        self.wait_for("ready-0", "ready-1")
        process.send_signal(signal.SIGHUP)
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, errors)

    def test_a_signal_to_all_of_a_terminal_is_one_request(self):
        process = subprocess.Popen(self.on_two_ranks("--mpi-arg", "--oversubscribe"), env=dict(os.environ, PLAY="sleep"), stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        self.wait_for("ready-0", "ready-1")
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, errors)
        self.assertNotIn("stopping at once", errors)

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
        self.assertLess(time.monotonic() - asked, 15)  # launch/run would wait 30 s for ranks that stay

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


if __name__ == "__main__":
    unittest.main()
