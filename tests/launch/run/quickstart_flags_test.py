"""launch/quickstart up to its set-up, who may make the corpus, and which ranks it chooses."""
import fcntl
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class QuickstartTest(unittest.TestCase):
    """The set-up is a stub that notes its flags and fails."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "clone/launch").mkdir(parents=True)
        shutil.copy(ROOT / "launch/quickstart", self.folder / "clone/launch")
        shutil.copytree(ROOT / "launch/scripts", self.folder / "clone/launch/scripts")
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
                     ("--ranks", "99999999999999999999"), ("--baseline-steps", "99999999999999999999"), \
                     ("--target-val-loss", "low"), ("--target-val-loss", "0.0"), ("--bundle",), ("--bundle", ""), ("--frob",):
            done, calls = self.run_quickstart(*flags)
            self.assertEqual((done.returncode, calls), (2, []), (flags, done.stdout))
            self.assertIn(f"quickstart: {'unknown option ' if flags == ('--frob',) else ''}{flags[0]}", done.stdout)
        for target in "3", "2.95", ".5", "50":
            self.assertEqual(self.run_quickstart("--target-val-loss", target)[0].returncode, 9)


class StubbedTest(unittest.TestCase):
    """On a machine that has two GPUs, with a program that notes its calls and stops where it is to compare."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in "launch", "build/release", "data/quickstart", "tools":
            (self.folder / name).mkdir(parents=True)
        shutil.copy(ROOT / "launch/quickstart", self.folder / "launch")
        shutil.copytree(ROOT / "launch/scripts", self.folder / "launch/scripts")
        self.corpus = self.folder / "data/quickstart/dataset.json"
        self.corpus.touch()
        self.program("launch/setup", "")
        self.program("tools/nvidia-smi", "echo 'GPU 0: Stub'; echo '  MIG 1g.5gb Device 0'; echo 'GPU 1: Stub'")
        self.program("build/release/sidestream",
                     "case $1 in --version) echo '  CUDA : 13.0' ;; verify) echo \"$*\" >compared; exit 75 ;; esac")

    def program(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def quickstart(self, *flags, **more):
        environment = {name: value for name, value in os.environ.items() if name not in ("CUDA_VISIBLE_DEVICES", "HOME", "XDG_CACHE_HOME")}
        environment.update(PATH=f"{self.folder}/tools:{os.environ['PATH']}", **more)
        return subprocess.run([self.folder / "launch/quickstart", *flags], env=environment, text=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)


class CeilingsTest(StubbedTest):
    def test_they_are_looked_for_where_the_program_keeps_them(self):
        """Without HOME, too: no folder that everybody may write into."""
        self.program("build/release/sidestream", "echo $1 >>calls; case $1 in --version) echo '  CUDA : 13.0' ;; verify) exit 75 ;; esac")
        home = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir)
        (self.folder / "home/.cache/sidestream").mkdir(parents=True)
        (self.folder / "home/.cache/sidestream/ceilings.json").touch()
        for more, kept in (({}, home), ({"HOME": ""}, home), ({"HOME": str(self.folder / "home")}, self.folder / "home")):
            done = self.quickstart(**more)
            self.assertEqual(done.returncode, 75, done.stdout)
            measured = "bench" in (self.folder / "calls").read_text().split()
            self.assertEqual(measured, not (kept / ".cache/sidestream/ceilings.json").exists(), more)
            (self.folder / "calls").unlink()


class CorpusTest(StubbedTest):
    """The one that makes it is alone; who trains on it shares it, and nobody takes it away."""

    def setUp(self):
        super().setUp()
        self.lock = (self.folder / "data/quickstart.lock").open("a")
        self.addCleanup(self.lock.close)
        self.program("build/env/bin/python", "echo include")
        self.program("build/release/sidestream", """
            for mode in --shared --exclusive; do flock -n $mode data/quickstart.lock true && may="$may $mode"; done
            echo "$1 $(cat data/quickstart/dataset.json), others may$may" >>calls
            case $1 in prepare) mkdir -p data/quickstart && echo new >data/quickstart/dataset.json ;; verify) exit 75 ;; esac""")

    def calls(self):
        calls = [line for line in (self.folder / "calls").read_text().splitlines() if line.startswith(("prepare", "verify"))]
        (self.folder / "calls").unlink()
        return calls

    def test_who_may_do_what(self):
        self.corpus.write_text("old")
        self.assertEqual((self.quickstart().returncode, self.calls()), (75, ["verify old, others may --shared"]))
        made = ["prepare , others may", "verify new, others may --shared"]
        self.assertEqual((self.quickstart("--fresh").returncode, self.calls()), (75, made))
        self.corpus.unlink()
        self.assertEqual((self.quickstart().returncode, self.calls()), (75, made))

    def test_what_another_call_uses_stays(self):
        self.corpus.write_text("old")
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        done = self.quickstart("--fresh")
        self.assertEqual((done.returncode, self.corpus.read_text()), (2, "old"), done.stdout)
        self.assertIn("--fresh: another call uses data/quickstart", done.stdout)
        self.assertEqual((self.quickstart().returncode, self.calls()), (75, ["verify old, others may --shared"]))

    def test_what_another_call_makes_is_waited_for(self):
        self.corpus.unlink()
        fcntl.flock(self.lock, fcntl.LOCK_EX)

        def made():
            self.corpus.write_text("other")
            fcntl.flock(self.lock, fcntl.LOCK_UN)

        threading.Timer(1, made).start()
        done = self.quickstart()
        self.assertEqual((done.returncode, self.calls()), (75, ["verify other, others may --shared"]), done.stdout)
        self.assertIn("another call makes data/quickstart: waiting for it", done.stdout)


class RanksTest(StubbedTest):
    def ranks_and_device(self, **more):
        done = self.quickstart(**more)
        self.assertEqual(done.returncode, 75, done.stdout)
        words = (self.folder / "compared").read_text().split()
        return words[words.index("--np") + 1], words[words.index("--device") + 1], done.stdout

    def test_a_rank_for_every_gpu_that_is_shown(self):
        self.assertEqual(self.ranks_and_device()[:2], ("2", "cuda"))
        for shown, ranks in {"0": "1", "1": "1", "0,1": "2", " 1, 0": "2", "1,-1,0": "1", "0,2": "1", "GPU-8932f937": "1"}.items():
            self.assertEqual(self.ranks_and_device(CUDA_VISIBLE_DEVICES=shown)[:2], (ranks, "cuda"), shown)

    def test_where_no_gpu_is_shown_cpu_ranks_train(self):
        for shown in "", "-1", "none", "2":
            _, device, said = self.ranks_and_device(CUDA_VISIBLE_DEVICES=shown)
            self.assertEqual(device, "cpu", shown)
            self.assertIn(f"CUDA_VISIBLE_DEVICES is '{shown}', which shows none of 2 GPU(s)", said)


unittest.main()
