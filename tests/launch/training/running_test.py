"""Of programs that a test has started nothing goes on when it fails, is stopped, or takes too long."""

import contextlib
import io
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from running import completed, processes_with, running

IN_A_BLOCK = """
import sys
from running import running
with running(sys.argv[1:], grace_s=0.2) as process:
    process.communicate()
"""
IN_A_TEST_CASE = """
import sys, unittest
from running import running
class Test(unittest.TestCase):
    def test_it(self):
        self.enterContext(running(COMMAND, grace_s=0.2)).communicate()
    def test_later(self):
        self.enterContext(running(COMMAND, grace_s=0.2)).communicate()
COMMAND, sys.argv[1:] = sys.argv[1:], []
unittest.main()
"""
# As a launcher does: what it starts has a group of its own, and it takes none of them along.
LAUNCHER = 'echo "it begins"; setsid sh -c "trap : TERM; sleep 600; sleep 600" & echo up > "$1"; trap "" TERM; sleep 600; sleep 600'


class RunningTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="sidestream-running-")
        self.addCleanup(holder.cleanup)
        self.up = pathlib.Path(holder.name) / "up"
        self.mark = f"MINE={holder.name}"
        self.env = os.environ | {"MINE": holder.name}
        self.command = ["sh", "-c", LAUNCHER, "sh", self.up]

    def wait_until_up(self):
        deadline = time.monotonic() + 20
        while not self.up.exists():
            self.assertLess(time.monotonic(), deadline, "the program does not start")
            time.sleep(0.01)

    def test_a_fault_ends_all_of_it_and_shows_what_was_said(self):
        with self.assertRaisesRegex(SystemExit, "a fault"), contextlib.redirect_stdout(io.StringIO()) as said:
            with running(self.command, self.env, grace_s=0.2):
                self.wait_until_up()
                self.assertGreater(len(processes_with(self.mark)), 1)
                sys.exit("a fault")
        self.assertEqual(processes_with(self.mark), [])
        self.assertIn("it begins", said.getvalue())

    def test_a_block_that_is_done_ends_what_still_runs_without_a_word(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            with running(self.command, self.env, grace_s=0.2):
                self.wait_until_up()
        self.assertEqual(processes_with(self.mark), [])
        self.assertEqual(said.getvalue(), "")

    def test_what_takes_too_long_ends(self):
        with self.assertRaises(subprocess.TimeoutExpired), contextlib.redirect_stdout(io.StringIO()) as said:
            completed(self.command, 0.5, self.env, grace_s=0.2)
        self.assertEqual(processes_with(self.mark), [])
        self.assertIn("it begins", said.getvalue())

    def test_what_is_left_by_one_that_has_ended_is_there_to_be_seen(self):
        done = completed(["sh", "-c", "sleep 600 > /dev/null 2>&1 & echo all done; exit 3"], 20, self.env)
        left = processes_with(self.mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual((done.returncode, done.stdout, len(left)), (3, "all done\n", 1))

    def stopped(self, process, number):
        """Its code. Asked again after a while: Python drops an exception that a signal raises while it destroys an object."""
        for _ in range(4):
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=10)
        process.kill()
        self.fail("it goes on")

    def test_a_test_that_is_stopped_ends_what_it_has_started(self):
        """As ctest does after a test's time; `&` of a script has it ignore Ctrl-C."""
        for number, script in itertools.product((signal.SIGINT, signal.SIGTERM), (IN_A_BLOCK, IN_A_TEST_CASE)):
            with self.subTest(signal=number, script=script):
                self.up.unlink(missing_ok=True)
                test = subprocess.Popen([sys.executable, "-c", script, *map(str, self.command)], env=self.env,
                                        cwd=pathlib.Path(__file__).parent, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
                self.wait_until_up()
                self.assertNotEqual(self.stopped(test, number), 0)
                self.assertEqual(processes_with(self.mark), [])


if __name__ == "__main__":
    unittest.main()
