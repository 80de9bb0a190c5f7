"""tests/run in a clone of stubs: what fails in any of its parts is told, and is no success."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent

SETUP = '#!/bin/sh\necho "setup $*" >> calls\nexit "${SETUP_CODE:-0}"\n'
SIDESTREAM = '#!/bin/sh\necho "NCCL      : ${STUB_NCCL:-not built}"\n'
NVIDIA_SMI = '#!/bin/sh\nexit "${NVIDIA_CODE:-9}"\n'
# Writes what ctest would; FAILS and NOT_WRITTEN name results (release, asan, tsan, gpu).
CTEST = """#!/usr/bin/env python3
import os, pathlib, sys
words = sys.argv[1:]
if "-N" in words:  # is asked for its options only
    sys.exit("--nope" in words)
file = pathlib.Path(words.pop(words.index("--output-junit") + 1))
words.remove("--output-junit")
print("ctest", *words, file=open("calls", "a"))
BROKEN = "<testcase name='Broken.in_NAME' status='fail'><failure message=''/><system-out>why it broke</system-out></testcase>"
name = file.name.split(".")[0]
if name in os.environ.get("NOT_WRITTEN", ""):
    sys.exit(1)
fails = name in os.environ.get("FAILS", "")
odd = os.environ.get("ODD", "")
file.write_text(f'''<testsuite>
<testcase name="Fine.in_{name}" status="run"><system-out>nothing of it</system-out></testcase>
<testcase name="Skipped.in_{name}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
{BROKEN.replace("NAME", name) if fails else ""}
{'<testcase name="Lost.in_%s" status="notrun"><skipped message="Unable to find executable: x"/></testcase>' % name if odd else ""}
</testsuite>''')
sys.exit(8 if fails or odd else 0)
"""


class GateTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="sidestream-gate-")
        self.addCleanup(holder.cleanup)
        self.clone = pathlib.Path(holder.name)
        for name in ("run", "failed_tests.py"):
            (self.clone / "tests").mkdir(exist_ok=True)
            shutil.copy(TESTS / name, self.clone / "tests")
        for name, text in (("launch/setup", SETUP), ("build/release/sidestream", SIDESTREAM), ("bin/nvidia-smi", NVIDIA_SMI),
                           ("build/env/bin/ctest", CTEST), ("build/env/bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')):
            file = self.clone / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)

    def gate(self, *flags, **variables):
        """(its end, what it called)"""
        calls = self.clone / "calls"
        calls.unlink(missing_ok=True)
        env = os.environ | {"PATH": f"{self.clone}/bin:{os.environ['PATH']}"} | variables
        done = subprocess.run([self.clone / "tests/run", *flags], env=env, text=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done, calls.read_text().splitlines() if calls.exists() else []

    def presets(self, calls):
        return [words[words.index("--preset") + 1] for words in map(str.split, calls) if words[0] == "ctest" and "--preset" in words]

    def test_all_of_it(self):
        done, calls = self.gate()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([line.split(" --parallel")[0] for line in calls],
                         ["setup --browser", "ctest --preset release", "setup --preset asan", "ctest --preset asan",
                          "setup --preset tsan", "ctest --preset tsan"])
        self.assertNotIn("failed", done.stdout)

    def test_a_failure_in_any_part_alone_is_no_success_and_is_named_at_the_end(self):
        for name in ("release", "asan", "tsan"):
            with self.subTest(name):
                done, calls = self.gate(FAILS=name)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertTrue(done.stdout.endswith(f"== failed ({name}): Broken.in_{name}\nwhy it broke\n"), done.stdout)
                self.assertEqual(done.stdout.count("== failed"), 1)
                self.assertEqual(self.presets(calls), ["release", "asan", "tsan"], "a failure keeps the rest from being seen")

    def test_a_test_that_could_not_begin_is_a_failure(self):
        done, _ = self.gate("--quick", ODD="1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("== failed (release): Lost.in_release", done.stdout)
        self.assertNotIn("Skipped.in_release", done.stdout)

    def test_results_that_were_not_written_are_told(self):
        (self.clone / "build/asan.tests.xml").write_text("<testsuite/>")  # of a call before
        done, calls = self.gate(NOT_WRITTEN="asan")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("== asan.tests.xml was not written: its tests did not begin", done.stdout)
        self.assertEqual(self.presets(calls), ["release", "asan", "tsan"])

    def test_a_part_of_it(self):
        for flags in (["--quick"], ["-R", "Name"], ["--quick", "-R", "Name"]):
            with self.subTest(flags):
                done, calls = self.gate(*flags)
                self.assertEqual((done.returncode, self.presets(calls)), (0, ["release"]), done.stdout)
                self.assertEqual(calls[-1].endswith(" -R Name"), "-R" in flags, calls)

    def test_a_word_that_ctest_does_not_know_is_refused_before_the_build(self):
        for flags in (["--nope"], ["--quick", "-R", "Name", "--nope"], ["--gpu", "--nope"]):
            with self.subTest(flags):
                done, calls = self.gate(*flags, NVIDIA_CODE="0")
                self.assertEqual((done.returncode, calls), (2, []), done.stdout)
                self.assertIn("tests/run: expected --quick, --gpu, --bundle DIR or options of ctest, found: ", done.stdout)
        (self.clone / "build/env/bin/ctest").rename(self.clone / "bin/ctest")  # of the machine, before the first set-up
        self.assertEqual(self.gate("--nope")[0].returncode, 2)

    def test_a_set_up_that_fails_ends_it(self):
        done, calls = self.gate(SETUP_CODE="5")
        self.assertEqual((done.returncode, calls), (5, ["setup --browser"]), done.stdout)

    def test_gpu_without_one_or_without_its_build_is_refused(self):
        done, calls = self.gate("--gpu")
        self.assertEqual((done.returncode, calls), (2, []), done.stdout)
        self.assertIn("tests/run: --gpu: there is no GPU here", done.stdout)
        done, calls = self.gate("--gpu", NVIDIA_CODE="0")
        self.assertEqual((done.returncode, calls), (2, ["setup --browser"]), done.stdout)
        self.assertIn("this build has no CUDA or no NCCL", done.stdout)

    def test_gpu_tests_come_first_and_count(self):
        found = {"NVIDIA_CODE": "0", "STUB_NCCL": "2.27"}
        done, calls = self.gate("--gpu", "--quick", **found)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(calls[1], "^ctest --test-dir build/release -L gpu --no-tests=error")
        self.assertEqual(self.presets(calls), ["release"])
        done, _ = self.gate("--gpu", "--quick", FAILS="gpu", **found)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("== failed (gpu): Broken.in_gpu", done.stdout)

    def test_a_bundle_needs_its_folder(self):
        done, calls = self.gate("--bundle")
        self.assertEqual((done.returncode, calls), (2, []), done.stdout)


class WordsTest(unittest.TestCase):
    """Stubs of the set-up and of ctest note how they are called."""

    def test_bundle_and_number_of_processors(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            clone = folder / "clone"
            for path, text in ((clone / "launch/setup", 'echo "setup $*" >> calls'), (clone / "build/env/bin/ctest", 'echo "ctest $*" >> calls'),
                               (folder / "nproc", "echo ${OMP_NUM_THREADS:-64}")):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"#!/bin/sh\n{text}\n")
                path.chmod(0o755)
            (clone / "build/bundle").mkdir()
            (clone / "build/bundle/environment").touch()
            (clone / "tests").mkdir()
            shutil.copy(TESTS / "run", clone / "tests")
            done = subprocess.run([clone / "tests/run", "--bundle", "here"], cwd=folder, text=True, capture_output=True,
                                  env=dict(os.environ, OMP_NUM_THREADS="3", PATH=f"{folder}:{os.environ['PATH']}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            setup, ctest = (clone / "calls").read_text().splitlines()
            self.assertEqual(setup, f"setup --bundle {folder}/here")
            self.assertIn("--preset release --parallel 64 ", ctest)


if __name__ == "__main__":
    unittest.main()
