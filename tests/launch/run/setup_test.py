"""launch/setup where there is no terminal, with a stub for cmake and an environment that is complete: setup_test.py ROOT"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

# Ninja as it writes into a pipe: forty steps in two seconds, one with a warning.
CMAKE = """#!/usr/bin/env bash
if [ "$1" = --preset ]; then mkdir -p "build/$2"; touch "build/$2/build.ninja"; exit 0; fi
echo "cmake $*" >> calls
for i in $(seq 40); do
  echo "[$i/40] Building CXX object part$i.o"
  [ $i != 20 ] || echo "part20.cpp:1: warning: odd"
  sleep 0.05
done
exit "${STUB_CODE:-0}"
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        launch = self.folder / "clone/launch"
        launch.mkdir(parents=True)
        shutil.copy(ROOT / "launch/setup", launch / "setup")
        shutil.copytree(ROOT / "launch/scripts", launch / "scripts")
        (launch / "apt-packages.txt").write_text("bash\n")
        (launch / "requirements.txt").write_text("torch==1\n")
        (self.folder / "clone/CMakePresets.json").write_text("{}")
        name = "env-" + hashlib.sha256(b"torch==1\n").hexdigest()[:12]
        environment = self.folder / "cache/sidestream" / name
        (environment / "bin").mkdir(parents=True)
        (environment / "complete").touch()
        (environment / "bin/cmake").write_text(CMAKE)
        (environment / "bin/cmake").chmod(0o755)

    def tearDown(self):
        self.temporary.cleanup()

    def run_setup(self, *flags, **variables):
        env = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), **variables)
        return subprocess.run([self.folder / "clone/launch/setup", *flags], env=env, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_without_a_terminal_a_line_every_few_seconds(self):
        done = self.run_setup()
        steps = [line for line in done.stdout.splitlines() if line.startswith("[")]
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("setup: configuring build/release", done.stdout)
        self.assertIn("setup: building build/release", done.stdout)
        self.assertIn("part20.cpp:1: warning: odd", done.stdout)
        self.assertTrue(1 <= len(steps) <= 5, steps)

    def test_what_is_built(self):
        """What the preset names, unless the programs alone are asked for."""
        for flags, targets in ((), ""), (("--programs",), "sidestream sidestream-trace"):
            done = self.run_setup(*flags)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn(f"will build {targets}{' of ' if targets else ''}preset 'release'", done.stdout)
            call = (self.folder / "clone/calls").read_text().splitlines()[-1]
            self.assertEqual(call.partition(" --target ")[2], targets, call)

    def test_wrong_flags_are_refused_before_anything_is_done(self):
        for flags, message in ((("--preset", "relaese"), "no preset 'relaese'"), (("--preset",), "needs a value"), (("--jobs", "many"), "found 'many'"),
                               (("--jobs", "0"), "found '0'"), (("--frob",), "unknown option")):
            for more in (), ("--dry-run",):
                done = self.run_setup(*flags, *more) if flags != ("--preset",) else self.run_setup(*more, *flags)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(message, done.stdout)
        self.assertFalse((self.folder / "clone/build").exists())

    def test_presets_are_known(self):
        """Those of the project, and a person's own."""
        names = [preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"] if not preset.get("hidden")]
        (self.folder / "clone/CMakeUserPresets.json").write_text('{"configurePresets": [{"name": "mine", "inherits": "release"}]}')
        for name in (*names, "mine"):
            done = self.run_setup("--dry-run", "--preset", name)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn(f"preset '{name}'", done.stdout)

    def test_jobs_are_those_that_the_machine_can_run(self):
        system = self.folder / "system"
        group = system / "sys/fs/cgroup/user/job"
        for folder in group, system / "proc/self":
            folder.mkdir(parents=True)
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "nproc").write_text("#!/bin/sh\necho ${OMP_NUM_THREADS:-64}\n")
        (tools / "nproc").chmod(0o755)
        (system / "proc/self/cgroup").write_text("0::/user/job\n")
        for memory_gb, around, cpu, limit, expected in (200, None, None, None, 64), (16, None, None, None, 10), (200, "max", "150000 100000", "max", 2), \
                                                       (200, "400000 100000", "max 100000", None, 4), (200, None, None, 12 << 30, 8), (1, None, None, None, 1):
            (system / "proc/meminfo").write_text(f"MemTotal: 9999999999 kB\nMemAvailable: {memory_gb * 1000000} kB\n")
            for file, text in (group.parent / "cpu.max", around), (group / "cpu.max", cpu), (group / "memory.max", limit):
                file.unlink(missing_ok=True)
                if text is not None:
                    file.write_text(f"{text}\n")
            done = subprocess.run([ROOT / "launch/scripts/build_jobs", system], text=True, capture_output=True,
                                  env=dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", OMP_NUM_THREADS="3"))
            self.assertEqual((done.stdout, done.stderr), (f"{expected}\n", ""), (memory_gb, around, cpu, limit))

    def test_a_build_that_fails_is_a_failure(self):
        done = self.run_setup(STUB_CODE="3")
        self.assertNotEqual(done.returncode, 0, done.stdout)


class QuickstartTest(unittest.TestCase):
    """Up to its set-up, which is a stub that notes its flags and fails."""

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
