"""launch/setup is asked to stop: nothing that it has started goes on, and its locks are free."""
import fcntl
import os
import shutil
import signal
import sys
import time
import unittest

from setup_case import ROOT, SetupCase

sys.path.insert(0, str(ROOT / "tests/launch/training"))
sys.dont_write_bytecode = True
from running import processes_with, running  # noqa: E402

# What a tool has started, and what that has.
LONG = "#!/bin/sh\necho $1 > up\n/bin/sleep 600\n"


class SetupStopTest(SetupCase):
    def setUp(self):
        super().setUp()
        self.long = self.program(self.folder / "long", LONG)
        self.mark = f"SETUP_STOP={self.folder.name}"
        self.lock = self.folder / "clone/build/setup-release.lock"

    def started(self, *flags, **more):
        name, value = self.mark.split("=")
        return self.enterContext(running([self.folder / "clone/launch/setup", *flags], self.variables(**more, **{name: value})))

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"never happened: {what}")
            time.sleep(0.02)

    def stopped(self, process, ask, number):
        """What it said. Until then somebody is at work."""
        self.wait_for((self.folder / "clone/up").exists, "the tool is at work")
        ask(process.pid, number)
        output, _ = process.communicate(timeout=30)
        self.assertEqual((process.returncode, processes_with(self.mark)), (128 + number, []), output)
        (self.folder / "clone/up").unlink()
        return output

    def test_what_it_has_started_goes_along(self):
        """By SIGTERM and a terminal that closes, which it hears alone, and by Ctrl-C."""
        for ask, number in (os.kill, signal.SIGTERM), (os.kill, signal.SIGHUP), (os.killpg, signal.SIGINT):
            for stage in "STUB_PIP", "STUB_CONFIGURE", "STUB_BUILD":
                with self.subTest(stage=stage, signal=number):
                    shutil.rmtree(self.environment, ignore_errors=True)
                    if stage != "STUB_PIP":
                        self.make_environment(self.environment)
                    shutil.rmtree(self.folder / "clone/build", ignore_errors=True)
                    self.stopped(self.started(**{stage: str(self.long)}), ask, number)
                    if stage != "STUB_PIP":
                        with self.lock.open("w") as lock:
                            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_who_waits_for_a_lock_can_be_stopped(self):
        self.lock.parent.mkdir()
        with self.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.started()
            while "waiting for it" not in (line := process.stdout.readline()):
                self.assertTrue(line, "it ended and has not waited")
            process.terminate()
            process.communicate(timeout=30)
        self.assertEqual((process.returncode, processes_with(self.mark)), (143, []))

    def test_apt_get_ends_by_itself(self):
        """Asked as Ctrl-C does; one that cannot be told is waited for."""
        for told, then in ("trap 'echo told >> calls; exit 130' INT", ["told"]), ("trap '' INT TERM", []):
            self.packages(f'{told}\ncase "$*" in *install*) touch up; for i in 1 2 3 4 5 6 7 8; do /bin/sleep 0.2; done; echo all >> calls;; esac',
                          id="echo 0", dpkg=":")
            process = self.started("--no-build")
            self.wait_for((self.folder / "clone/up").exists, "apt-get installs")
            process.terminate()
            output, _ = process.communicate(timeout=30)
            self.assertEqual((process.returncode, processes_with(self.mark)), (130 if then else 143, []), output)
            self.assertEqual(self.calls()[-1:], then or ["all"])
            for file in "up", "calls":
                (self.folder / "clone" / file).unlink()

    def test_between_commands_it_ends(self):
        """The stub asks, and ends before it is heard."""
        for code in "kill -TERM", "kill -HUP":
            done = self.run_setup(STUB_BUILD=code)
            self.assertEqual(done.returncode, 128 + (signal.SIGTERM if "TERM" in code else signal.SIGHUP), done.stdout)


unittest.main()
