"""launch/quickstart up to its set-up."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class QuickstartTest(unittest.TestCase):
    """The set-up is a stub that notes its flags and fails."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "clone/launch").mkdir(parents=True)
        shutil.copy(ROOT / "launch/quickstart", self.folder / "clone/launch")
        (self.folder / "clone/launch/setup").write_text('#!/bin/sh\necho "$*" >> calls\nexit 9\n')
        (self.folder / "clone/launch/setup").chmod(0o755)

    def tearDown(self):
        self.temporary.cleanup()

    def run_quickstart(self, *flags):
        done = subprocess.run([self.folder / "clone/launch/quickstart", *flags], cwd=self.folder, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        calls = self.folder / "clone/calls"
        return done, calls.read_text().splitlines() if calls.exists() else []

    def test_a_bundle_is_handed_to_the_set_up(self):
        for flags, expected in ((), "--programs"), (("--bundle", "here"), f"--programs --bundle {self.folder}/here"):
            done, calls = self.run_quickstart(*flags)
            self.assertEqual((done.returncode, calls[-1]), (9, expected), done.stdout)

    def test_wrong_flags_are_refused_before_the_set_up(self):
        for flags in ("--ranks", "two"), ("--ranks", "0"), ("--ranks",), ("--baseline-steps", "-3"), ("--baseline-steps", "1.5"), \
                     ("--target-val-loss", "low"), ("--target-val-loss", "0.0"), ("--bundle",), ("--bundle", ""), ("--frob",):
            done, calls = self.run_quickstart(*flags)
            self.assertEqual((done.returncode, calls), (2, []), (flags, done.stdout))
            self.assertIn(f"quickstart: {'unknown option ' if flags == ('--frob',) else ''}{flags[0]}", done.stdout)
        for target in "3", "2.95", ".5", "50":
            self.assertEqual(self.run_quickstart("--target-val-loss", target)[0].returncode, 9)


unittest.main()
