"""What the scripts of long tests do around them. What they start is stubs, in a folder of its own."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The first fuzzer finds something when its siblings run.
FUZZER = """#!/bin/sh
case "$*" in
  *-seed=1\\ *) while [ ! -e sibling ]; do sleep 0.1; done; exit 77 ;;
  *) echo $$ >sibling.new; mv sibling.new sibling; exec sleep 300 ;;
esac
"""


class SoakScriptsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "tests/soak").mkdir(parents=True)
        (self.folder / "tests/bench").mkdir()
        for name in "soak/run", "soak/fuzz", "bench/kept.py":
            shutil.copy(ROOT / "tests" / name, self.folder / "tests" / name)
        self.program("launch/setup", "#!/bin/sh\n")
        self.program("build/env/bin/ctest", "#!/bin/sh\n")
        self.program("build/env/bin/cmake", "#!/bin/sh\n")
        self.program("build/env/bin/python", f"#!/bin/sh\n[ \"$1\" != -Bc ] || exec {sys.executable} \"$@\"\n")

    def program(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def test_results_come_above_those_that_are_there(self):
        results = self.folder / "tests/soak/results.md"
        results.write_text("2026-11-21: 500 kills.\nA line by hand.\n")

        done = subprocess.run([self.folder / "tests/soak/run", "--kills", "7", "--resumes", "2"], text=True, timeout=60,
                              capture_output=True)

        self.assertEqual(done.returncode, 0, done.stderr)
        new, old = results.read_text().split("\n\n")
        self.assertRegex(new, r"(?s)^\d{4}-\d\d-\d\d: 7 kills of a process .*\n6 training runs .* 0 minutes\.$")
        self.assertEqual(old, "2026-11-21: 500 kills.\nA line by hand.\n")
        self.assertTrue(done.stdout.endswith(f"{new}\n"), done.stdout)

    def test_each_says_how_it_is_called(self):
        for name in "soak/run", "soak/fuzz", "soak/sanitizers", "bench/run":
            with self.subTest(script=name):
                script = ROOT / "tests" / name
                help_text = subprocess.run([script, "--help"], text=True, timeout=60, capture_output=True)
                self.assertEqual((help_text.returncode, help_text.stderr), (0, ""))
                self.assertIn(f"  tests/{name} [", help_text.stdout)
                self.assertNotIn("set -e", help_text.stdout)
                unknown = subprocess.run([script, "--nope"], text=True, timeout=60, capture_output=True)
                self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
                self.assertIn("unknown option --nope", unknown.stderr)

    def test_a_fuzzer_that_finds_something_ends_its_siblings(self):
        self.program("build/fuzz/tests/core/fuzz/core_fuzz_shard", FUZZER)
        self.program("tools/nproc", "#!/bin/sh\necho 2\n")
        (self.folder / "build/fuzz/build.ninja").touch()

        done = subprocess.run([self.folder / "tests/soak/fuzz", "--no-setup", "shard"], timeout=60, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=os.environ | {"PATH": f"{self.folder}/tools:{os.environ['PATH']}"})

        self.assertEqual(done.returncode, 1)
        sibling = pathlib.Path("/proc", (self.folder / "sibling").read_text().strip(), "cmdline")
        end = time.monotonic() + 10
        while sibling.exists() and sibling.read_bytes() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(sibling.exists() and sibling.read_bytes())


if __name__ == "__main__":
    unittest.main()
