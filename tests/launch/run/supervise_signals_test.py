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
                process = self.started(self.command(), "sleep")
                self.wait_for(process, "ready")
                process.send_signal(number)
                _, errors = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 75, errors)
                self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 1)

    def test_what_was_ignored_at_the_start_stays_ignored(self):
        """It is no request to stop: the ranks go on, and a failure that comes later is restarted."""
        as_nohup_does = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
        process = self.started(self.on_two_ranks(), "sleep;0", **as_nohup_does)
        self.wait_for(process, "ready-0", "ready-1")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR2)  # what comes later is heard
        self.wait_for(process, "dumped-0", "dumped-1")
        os.kill(int((self.run_dir / "ready-1").read_text()), signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("ended with 137; start 2 in", errors)

    def test_a_signal_to_all_of_a_terminal_is_one_request(self):
        process = self.started(self.on_two_ranks("--mpi-arg", "--oversubscribe"), "sleep")
        self.wait_for(process, "ready-0", "ready-1")
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, errors)
        self.assertNotIn("stopping at once", errors)

    def test_a_request_for_what_is_recorded_is_passed_on(self):
        process = self.started(self.on_two_ranks("--mpi-arg", "--oversubscribe"), "sleep")
        self.wait_for(process, "ready-0", "ready-1")
        process.send_signal(signal.SIGUSR2)
        self.wait_for(process, "dumped-0", "dumped-1")
        self.assertIsNone(process.poll())  # the ranks go on
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, errors)
        self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 2)  # of two ranks, started once

    def test_asked_twice_it_ends_at_once(self):
        process = self.started(self.on_two_ranks(), "deaf")
        self.wait_for(process, "ready")
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)  # two that come together are one
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertLess(time.monotonic() - asked, 15)  # launch/run would wait 30 s for ranks that stay

    def test_its_own_death_ends_the_run(self):
        process = self.started(self.command(), "sleep", stderr=subprocess.DEVNULL)
        self.wait_for(process, "ready")
        process.kill()
        process.wait()
        end = time.monotonic() + 20
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.processes(), [])

    def test_a_death_before_anybody_could_be_told_ends_what_it_starts(self):
        begin = supervise.end_with_parent()  # of this process, not of the one that starts the program
        middle = os.fork()
        if middle == 0:
            os._exit(subprocess.run(["true"], preexec_fn=begin).returncode)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(middle, 0)[1]), 143)

    def test_no_orphans(self):
        self.play("orphan 6;0")
        self.assertEqual(self.processes(), [])

    def test_messages_that_nobody_reads_hold_nothing_up(self):
        read, write = os.pipe()
        process = self.started(self.command(), "noisy 6;noisy 0", stderr=write)
        os.close(write)
        os.close(read)
        self.assertEqual(process.wait(timeout=30), 0)
        self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 2)

    def test_no_shared_memory_of_its_jobs_is_left(self):
        job = 2 ** 40 + 2 * os.getpid()  # beyond the numbers that Open MPI gives
        own, other = (pathlib.Path(f"/dev/shm/vader_segment.test.0.{number:x}.0") for number in (job, job + 1))
        for file in (own, other):
            self.addCleanup(file.unlink, missing_ok=True)
        other.touch()
        done, _ = self.play(f"segment {job} 2")
        self.assertIn(f"removing {own}, which the launcher left behind", done.stderr)
        self.assertFalse(own.exists())
        self.assertTrue(other.exists())


if __name__ == "__main__":
    unittest.main()
