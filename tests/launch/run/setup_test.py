"""launch/setup where there is no terminal, with a stub for cmake and an environment that is complete: setup_test.py ROOT"""
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))

# Ninja as it writes into a pipe: forty steps in two seconds, one with a warning.
CMAKE = """#!/usr/bin/env bash
if [[ $* = *--preset* && $1 != --build ]]; then
  echo "configure $* CXX=$CXX CUDACXX=$CUDACXX" >> calls
  made=build/${!#} cuda=ON
  [ "${!#}" != cpu ] || cuda=OFF
  mkdir -p "$made"
  ${STUB_CONFIGURE:-true} $PPID || exit 1
  [ -e "$made/CMakeCache.txt" ] && [ "$1" != --fresh ] ||
    printf '%s\n' "SIDESTREAM_ENV:PATH=$PWD/build/env" "SIDESTREAM_CUDA:BOOL=$cuda" \
      "CMAKE_CXX_COMPILER:STRING=$(command -v "${CXX:-c++}")" \
      "CMAKE_CUDA_COMPILER:FILEPATH=${CUDACXX:-NOTFOUND}" > "$made/CMakeCache.txt"
  touch "$made/build.ninja"
  exit 0
fi
echo "cmake $*" >> calls
${STUB_BUILD:-true} $PPID || exit 1
for i in $(seq 40); do
  echo "[$i/40] Building CXX object part$i.o"
  [ $i != 20 ] || echo "part20.cpp:1: warning: odd"
  sleep "${STUB_PAUSE:-0}"
done
exit "${STUB_CODE:-0}"
"""

# Python of the system, and of the environments that it makes.
PYTHON = """#!/usr/bin/env bash
[ "$0" != "${STUB_GONE:-}" ] || exit 127
case "$*" in
  -c*print*) echo "${STUB_VERSION:-3.11}" ;;
  -V) echo "Python ${STUB_VERSION:-3.11}.2" ;;
  "-m venv --clear "*) rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; cp "$STUB_CMAKE" "$4/bin/cmake"; echo venv >> calls ;;
  "-m pip install"*) echo pip >> calls; ${STUB_PIP:-true} $PPID ;;
esac
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
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.cmake = self.program(self.folder / "cmake", CMAKE)
        self.program(self.tools / "python3", PYTHON)
        self.environment = self.environment_of(f"torch==1\n3.11 {os.uname().machine}\n")
        self.make_environment(self.environment)

    def tearDown(self):
        self.temporary.cleanup()

    def program(self, path, text):
        path.write_text(text)
        path.chmod(0o755)
        return path

    def environment_of(self, text):
        return self.folder / "cache/sidestream" / ("env-" + hashlib.sha256(text.encode()).hexdigest()[:12])

    def make_environment(self, folder):
        (folder / "bin").mkdir(parents=True)
        (folder / "complete").touch()
        self.program(folder / "bin/cmake", CMAKE)
        self.program(folder / "bin/python", PYTHON)

    def calls(self):
        calls = self.folder / "clone/calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def run_setup(self, *flags, **variables):
        env = {"XDG_CACHE_HOME": str(self.folder / "cache"), "PATH": f"{self.tools}:{os.environ['PATH']}", "STUB_CMAKE": str(self.cmake)}
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "CXX", "CUDACXX")} | env | variables
        return subprocess.run([self.folder / "clone/launch/setup", *flags], env=env, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_without_a_terminal_a_line_every_few_seconds(self):
        done = self.run_setup(STUB_PAUSE="0.05")
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
            self.assertEqual(self.calls()[-1].partition(" --target ")[2], targets)

    def test_wrong_flags_are_refused_before_anything_is_done(self):
        for flags, message in ((("--preset", "relaese"), "no preset 'relaese'"), (("--preset",), "needs a value"),
                               (("--jobs", "many"), "found 'many'"), (("--jobs", "0"), "found '0'"), (("--frob",), "unknown option")):
            for more in (), ("--dry-run",):
                done = self.run_setup(*flags, *more) if flags != ("--preset",) else self.run_setup(*more, *flags)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(message, done.stdout)
        self.assertFalse((self.folder / "clone/build").exists())

    def test_presets_are_known(self):
        """Those of the project, and a person's own."""
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        names = [preset["name"] for preset in presets if not preset.get("hidden")]
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
        self.program(self.tools / "nproc", "#!/bin/sh\necho ${OMP_NUM_THREADS:-64}\n")
        (system / "proc/self/cgroup").write_text("0::/user/job\n")
        for memory_gb, around, cpu, limit, expected in ((200, None, None, None, 64), (16, None, None, None, 10), (1, None, None, None, 1),
                                                        (200, "max", "150000 100000", "max", 2), (200, None, None, 12 << 30, 8),
                                                        (200, "400000 100000", "max 100000", None, 4)):
            (system / "proc/meminfo").write_text(f"MemTotal: 9999999999 kB\nMemAvailable: {memory_gb * 1000000} kB\n")
            for file, text in (group.parent / "cpu.max", around), (group / "cpu.max", cpu), (group / "memory.max", limit):
                file.unlink(missing_ok=True)
                if text is not None:
                    file.write_text(f"{text}\n")
            done = subprocess.run([ROOT / "launch/scripts/build_jobs", system], text=True, capture_output=True,
                                  env=dict(os.environ, PATH=f"{self.tools}:{os.environ['PATH']}", OMP_NUM_THREADS="3"))
            self.assertEqual((done.stdout, done.stderr), (f"{expected}\n", ""), (memory_gb, around, cpu, limit))

    def test_environment_is_that_of_python_and_machine(self):
        """A newer Python gets one of its own; one whose Python is gone is made anew, and one of an earlier version is used on."""
        self.assertEqual(self.run_setup("--no-build").returncode, 0)
        self.assertEqual(self.calls(), [])
        newer = self.environment_of(f"torch==1\n3.12 {os.uname().machine}\n")
        self.assertEqual(self.run_setup("--no-build", STUB_VERSION="3.12").returncode, 0)
        self.assertEqual((self.calls(), (newer / "complete").exists()), (["venv", "pip"], True))
        self.assertEqual((self.folder / "clone/build/env").resolve(), newer)

        self.program(self.environment / "bin/python", "#!/nowhere/python\n")
        done = self.run_setup("--no-build")
        self.assertEqual((done.returncode, self.calls()), (0, ["venv", "pip"] * 2), done.stdout)
        self.assertIn("does not run: installing it anew", done.stdout)

        earlier = self.environment_of("torch==1\n")
        shutil.rmtree(self.environment)
        self.make_environment(earlier)
        self.assertEqual(self.run_setup("--no-build").returncode, 0)
        self.assertEqual((self.folder / "clone/build/env").resolve(), earlier)
        self.assertEqual(len(self.calls()), 4)

    def configured(self, *flags, **variables):
        """How this call has configured: "", "again" or "fresh"; and what it said."""
        before = len(self.calls())
        done = self.run_setup(*flags, **variables)
        self.assertEqual(done.returncode, 0, done.stdout)
        calls = [call for call in self.calls()[before:] if call.startswith("configure")]
        self.assertLess(len(calls), 2)
        return "".join("fresh" if "--fresh" in call else "again" for call in calls), done.stdout

    def test_compilers_and_mpi_that_have_changed_are_configured_anew(self):
        mpirun = self.program(self.tools / "mpirun", "#!/bin/sh\necho 4.1\n")
        self.assertEqual(self.configured()[0], "fresh")
        self.assertEqual(self.configured()[0], "")
        self.program(mpirun, "#!/bin/sh\necho 5.0\n")
        how, said = self.configured()
        self.assertEqual(how, "fresh")
        self.assertIn("not as at the last configure: mpirun", said)
        self.assertEqual(self.configured()[0], "")
        # A shell without its module, and without its libraries.
        elsewhere = self.folder / "modules"
        elsewhere.mkdir()
        self.program(elsewhere / "mpirun", '#!/bin/sh\n[ -n "$LOADED" ] && echo 6.0\n')
        self.assertEqual(self.configured(PATH=f"{elsewhere}:{self.tools}:{os.environ['PATH']}", LOADED="1")[0], "fresh")
        mpirun.unlink()
        if not shutil.which("mpirun"):
            self.assertEqual(self.configured()[0], "")

    def test_what_cxx_and_cudacxx_said_holds(self):
        """Until they say something else, or a toolkit is another one."""
        nvcc = self.program(self.folder / "nvcc", "#!/bin/sh\necho 13.0\n")
        other = self.program(self.folder / "other++", "#!/bin/sh\necho 1\n")
        self.assertEqual(self.configured()[0], "fresh")
        how, said = self.configured(CUDACXX=str(nvcc), CXX=str(other))
        self.assertEqual(how, "fresh")
        self.assertRegex(said, "last configure: .*compiler .*nvcc")
        self.assertEqual(self.configured()[0], "")
        self.program(nvcc, "#!/bin/sh\necho 13.1\n")
        self.assertEqual(self.configured()[0], "fresh")
        self.assertIn(f"CXX={other} CUDACXX={nvcc}", self.calls()[-2])
        other.unlink()
        self.assertEqual(self.configured()[0], "fresh")
        self.assertIn(f"CXX= CUDACXX={nvcc}", self.calls()[-2])
        self.assertEqual(self.configured(CXX="c++")[0], "")  # which it is by itself

    def test_builds_without_cuda_do_not_look_at_a_toolkit(self):
        nvcc = self.program(self.folder / "nvcc", "#!/bin/sh\necho 13.0\n")
        for preset, how in ("cpu", ""), ("release", "fresh"):
            self.configured("--preset", preset)
            self.assertEqual(self.configured("--preset", preset, CUDACXX=str(nvcc))[0], how)

    def test_a_bundle_says_where_its_mpirun_is(self):
        self.program(self.folder / "clone/launch/unpack-bundle", """#!/bin/sh
            mkdir -p build/bundle/env
            cp -r "$ENVIRONMENT"/. build/bundle/env
            echo stamp > build/bundle/complete
            echo export IN_BUNDLE=1 > build/bundle/environment
            printf '#!/bin/sh\\n' > build/release/sidestream; chmod +x build/release/sidestream\n""")
        (self.folder / "clone/build/release").mkdir(parents=True)
        done = self.run_setup("--bundle", "anywhere", ENVIRONMENT=str(self.environment))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("launch/run finds it, a shell of yours after '. build/bundle/environment'", done.stdout.splitlines()[-1])
        self.assertTrue((self.folder / "clone/build/env").samefile(self.folder / "clone/build/bundle/env"))

    def test_a_configure_that_failed_is_made_anew(self):
        mpirun = self.program(self.tools / "mpirun", "#!/bin/sh\necho 4.1\n")
        self.configured()
        for code in "false", "kill -KILL":
            self.program(mpirun, "#!/bin/sh\necho 5.0\n")
            self.assertNotEqual(self.run_setup(STUB_CONFIGURE=code).returncode, 0)
            self.program(mpirun, "#!/bin/sh\necho 4.1\n")
            self.assertEqual(self.configured()[0], "fresh")

    def test_builds_that_it_has_not_configured_are_taken_over(self):
        """Of an earlier version, or made by hand: what is compiled stays, unless it is of another environment."""
        self.configured()
        made = self.folder / "clone/build/release"
        (made / "object.o").touch()
        (made / "tools").unlink()
        self.assertEqual(self.configured()[0], "again")
        self.assertEqual(self.configured()[0], "")
        for name in "tools", "environment":
            (made / name).unlink()
        self.assertEqual(self.configured()[0], "again")
        self.assertTrue((made / "object.o").exists())
        (made / "tools").unlink()
        other = self.program(self.folder / "other++", "#!/bin/sh\necho 1\n")
        self.assertEqual(self.configured(CXX=str(other))[0], "fresh")
        self.assertTrue((made / "object.o").exists())

        torch = self.environment / "lib/python3.11/site-packages/torch"
        torch.mkdir(parents=True)
        for place, kept in (self.folder / "clone/build/env/lib/python3.11/site-packages/torch", True), (self.folder / "torch", False):
            with (made / "CMakeCache.txt").open("a") as cache:
                cache.write(f"SIDESTREAM_TORCH_DIR:PATH={place}\n")
            for name in "tools", "environment":
                (made / name).unlink()
            how, said = self.configured()
            self.assertEqual((how, (made / "object.o").exists()), ("again" if kept else "fresh", kept), said)

    def test_objects_of_another_environment_go(self):
        self.configured()
        made = self.folder / "clone/build/release"
        (made / "object.o").touch()
        how, said = self.configured(STUB_VERSION="3.12")
        self.assertEqual((how, (made / "object.o").exists()), ("fresh", False))
        self.assertIn("the Python environment has changed", said)
        # build/env has led elsewhere since somebody configured this one.
        for name in "tools", "environment":
            (made / name).unlink()
        (made / "object.o").touch()
        os.utime(made / "build.ninja", (1, 1))
        self.assertEqual(self.configured(STUB_VERSION="3.12")[0], "fresh")
        self.assertFalse((made / "object.o").exists())

    def packages(self, apt, **more):
        """One is missing; `apt` is what apt-get and dpkg do."""
        (self.folder / "clone/launch/apt-packages.txt").write_text("no-such-package\n")
        for name, text in {"apt-get": apt, "dpkg": apt, "id": "echo 1000", **more}.items():
            self.program(self.tools / name, f'#!/bin/sh\necho "{name} $*" >> calls\n{text}\n')

    def test_another_package_manager_is_waited_for(self):
        for said in ("dpkg: error: dpkg frontend lock was locked by another process with pid 7",
                     "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)",
                     "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"):
            (self.folder / "clone/calls").unlink(missing_ok=True)
            self.packages(f'[ $(grep -c "^$(basename "$0")" calls) -gt 2 ] || {{ echo "{said}" >&2; exit 100; }}', id="echo 0", sleep=":")
            done = self.run_setup("--no-build")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(done.stdout.count("another package manager is at work"), 2, done.stdout)
            self.assertNotIn(said, done.stdout)
            self.assertEqual([call for call in self.calls() if call.startswith(("dpkg -", "apt-get"))],
                             ["dpkg --configure -a"] * 3 + ["apt-get update -qq"] * 3
                             + ["apt-get install -y -qq --no-install-recommends no-such-package"])

    def test_packages_that_cannot_be_installed(self):
        """What it says, and one line of ours; no patience but for locks, and none for ever."""
        for broken, message in (("dpkg", "dpkg could not repair"), ("update", "could not fetch Debian's package lists"),
                                ("install", "could not install: no-such-package")):
            fails = 'echo "E: Permission denied; Unable to lock directory" >&2; exit 100'
            self.packages(f'case "$0 $1" in *{broken}*) {fails};; esac', id="echo 0")
            done = self.run_setup("--no-build")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(message, done.stdout)
            self.assertIn("Unable to lock directory", done.stdout)
            self.assertNotIn("waiting", done.stdout)
        (self.folder / "clone/calls").unlink()
        self.packages("echo 'E: Could not get lock' >&2; exit 100", id="echo 0", sleep=":")
        self.assertIn("Could not get lock", self.run_setup("--no-build").stdout)
        self.assertEqual(self.calls().count("sleep 5"), 120)

    def test_sudo(self):
        """Keeps the proxy; who is refused hears who else can help."""
        self.packages("env >> calls", sudo='[ "$1" = -n ] || "$@"')
        done = self.run_setup("--no-build", https_proxy="http://proxy:1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("sudo env DEBIAN_FRONTEND=noninteractive LC_ALL=C https_proxy=http://proxy:1 apt-get update -qq", self.calls())
        self.assertEqual(self.calls().count("DEBIAN_FRONTEND=noninteractive"), 3)
        self.packages(":", sudo="exit 1")
        done = self.run_setup("--no-build")
        self.assertEqual(done.returncode, 1, done.stdout)
        for words in "ask an administrator to install: no-such-package", "launch/bundle DIR", "launch/setup --bundle DIR":
            self.assertIn(words, done.stdout)
        self.assertNotIn("apt-get update -qq", self.calls()[-4:])

    def test_an_old_python_is_refused_before_anything_is_installed(self):
        (self.folder / "clone/launch/apt-packages.txt").write_text("no-such-package\n")
        self.program(self.tools / "apt-get", "#!/bin/sh\ntouch apt\n")
        for flags, message in (("3.10", "3.11 or newer is needed, found 3.10"), ("3.9", "found 3.9")):
            done = self.run_setup(STUB_VERSION=flags)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(message, done.stdout)
            self.assertIn("PYTHON=", done.stdout)
        self.assertFalse((self.folder / "clone/apt").exists())
        self.assertIn("no Python that runs as 'nothing'", self.run_setup(PYTHON="nothing").stdout)

    def test_an_interrupted_set_up_goes_on(self):
        shutil.rmtree(self.environment)
        for code in "kill -KILL", "kill -TERM", "false":
            self.assertNotEqual(self.run_setup(STUB_PIP=code).returncode, 0)
            self.assertFalse((self.environment / "complete").exists())
        for code in "kill -KILL", "kill -TERM", "false":
            self.assertNotEqual(self.run_setup(STUB_CONFIGURE=code).returncode, 0)
        for code in "kill -KILL", "kill -TERM", "false":
            self.assertNotEqual(self.run_setup(STUB_BUILD=code).returncode, 0)
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.calls()[:5], ["venv", "pip", "pip", "pip", "pip"])

    def test_a_cache_that_cannot_be_written_is_told_before_packages_are_installed(self):
        shutil.rmtree(self.environment)
        (self.folder / "clone/launch/apt-packages.txt").write_text("no-such-package\n")
        self.program(self.tools / "apt-get", "#!/bin/sh\ntouch apt\n")
        (self.folder / "file").touch()
        done = self.run_setup(XDG_CACHE_HOME=str(self.folder / "file"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("XDG_CACHE_HOME=", done.stdout)
        self.assertFalse((self.folder / "clone/apt").exists())

    def test_locks(self):
        """Who waits says for whom; a file system without locks has nobody wait."""
        shutil.rmtree(self.environment)
        self.environment.parent.mkdir(exist_ok=True)
        with (self.environment.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            threading.Timer(1, lambda: fcntl.flock(lock, fcntl.LOCK_UN)).start()
            done = self.run_setup("--no-build")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("another set-up installs into", done.stdout)
        shutil.rmtree(self.environment)
        self.program(self.tools / "flock", "#!/bin/sh\necho 'flock: No locks available' >&2\nexit 71\n")
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("waiting", done.stdout)

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


class TestsRunTest(unittest.TestCase):
    """tests/run up to the tests: stubs of the set-up and of ctest note how they are called."""

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
            shutil.copy(ROOT / "tests/run", clone / "tests")
            done = subprocess.run([clone / "tests/run", "--bundle", "here"], cwd=folder, text=True, capture_output=True,
                                  env=dict(os.environ, OMP_NUM_THREADS="3", PATH=f"{folder}:{os.environ['PATH']}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            setup, ctest = (clone / "calls").read_text().splitlines()
            self.assertEqual(setup, f"setup --bundle {folder}/here")
            self.assertIn("--preset release --parallel 64 ", ctest)


unittest.main()
