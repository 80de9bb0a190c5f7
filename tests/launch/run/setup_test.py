"""What launch/setup is asked for, what it installs, and what it waits for or refuses."""
import fcntl
import json
import os
import pwd
import shutil
import subprocess
import threading
import unittest

from setup_case import ROOT, SetupCase


class SetupTest(SetupCase):
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

    def test_it_needs_no_home(self):
        """Which a service or a container may not have set: the one of the list of users counts."""
        expected = f"into {pwd.getpwuid(os.getuid()).pw_dir}/.cache/sidestream"
        for home in {}, {"HOME": ""}:
            done = subprocess.run(["env", "-u", "HOME", "-u", "XDG_CACHE_HOME", *(f"{name}={value}" for name, value in home.items()),
                                   self.folder / "clone/launch/setup", "--dry-run"], env=self.variables(), capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(expected, done.stdout)
        self.assertIn(f"into {self.folder}/.cache/sidestream", self.run_setup("--dry-run", XDG_CACHE_HOME="", HOME=str(self.folder)).stdout)

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
        """Keeps the proxy and shows no password of it; who is refused hears who else can help."""
        self.packages("env >> calls", sudo='case "$1" in -n) exit;; --preserve-env=*) shift;; *) unset https_proxy;; esac; "$@"')
        done = self.run_setup("--no-build", https_proxy="http://me:secret@proxy:1", no_proxy="here")
        self.assertEqual(done.returncode, 0, done.stdout)
        words = "sudo --preserve-env=https_proxy,no_proxy env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get update -qq"
        self.assertIn(words, self.calls())
        for variable in "DEBIAN_FRONTEND=noninteractive", "https_proxy=http://me:secret@proxy:1":
            self.assertEqual(self.calls().count(variable), 3)
        self.assertEqual([call for call in self.calls() if call.startswith("sudo") and "secret" in call], [])
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


unittest.main()
