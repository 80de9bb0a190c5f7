"""The command line of launch/nsys-collect."""
import os
import pathlib
import re
import shutil
import subprocess

from script import Script

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST_STEP = 10**9
VALUES = {"-np": "ranks", "--ranks": "ranks", "--steps": "steps", "--output": "output", "--build": "build", "--hosts": "hosts",
          "--hostfile": "hostfile", "--nsys-flag": "nsys_flags"}
SWITCHES = {"--interactive": "interactive", "--slurm": "slurm", "--cuda-profiler": "cuda_profiler", "--overwrite": "overwrite",
            "--osrt": "osrt", "--no-export": "no_export"}

script = Script("nsys-collect")
say, fail = script.say, script.fail


class Options:
    def __init__(self, words, help_text):
        given, self.command = script.split(words, help_text, VALUES, SWITCHES)
        self.ranks = script.ranks(given)
        self.steps = given.get("steps", [None])[-1]
        self.output = pathlib.Path(given["output"][-1]) if "output" in given else None
        self.build = pathlib.Path(given.get("build", [ROOT / "build/release"])[-1]).absolute()
        self.launch_words = [word for name in ("hosts", "hostfile") for value in given.get(name, []) for word in (f"--{name}", value)]
        self.nsys_flags = given.get("nsys_flags", [])
        self.trace = "nvtx,mpi,cuda" + (",osrt" if "osrt" in given else "")
        self.interactive, self.slurm, self.overwrite = "interactive" in given, "slurm" in given, "overwrite" in given
        self.cuda_profiler, self.export = "cuda_profiler" in given, "no_export" not in given
        self.first = self.last = None
        self.check()

    def check(self):
        if self.interactive and self.steps is not None:
            fail("--interactive: you start and stop by hand, leave --steps out")
        if not self.interactive:
            self.check_steps()
        if "" in self.launch_words:
            fail("--hosts and --hostfile: expected a list such as a:8,b:8, or a file, found ''")
        if self.slurm and self.launch_words:
            fail("--slurm: the allocation names the hosts, leave --hosts out")
        if self.slurm and not shutil.which("srun"):
            fail("--slurm: there is no srun here: call it on a machine of the cluster, inside an allocation (salloc, sbatch)")
        if self.cuda_profiler and subprocess.run("nvidia-smi --list-gpus", shell=True, capture_output=True).returncode != 0:
            fail("--cuda-profiler: there is no GPU here; CPU ranks are recorded without it")
        if self.interactive and self.cuda_profiler:
            fail("--interactive and --cuda-profiler: one of the two decides when it starts")
        if not self.command:
            fail(f"nothing to start: launch/nsys-collect -np {self.ranks} --steps 20:30 -- train ...")
        if not os.access(self.build / "sidestream", os.X_OK):
            fail(f"there is no {self.build}/sidestream: build it with launch/setup, or name another with --build")

    def check_steps(self):
        if self.steps == "all":
            return
        if self.steps is None:
            fail("--steps is missing: FIRST:LAST, counted from 1, such as 20:30, or all")
        match = re.fullmatch(r"(\d{1,10}):(\d{1,10})", self.steps)
        if match:
            self.first, self.last = map(int, match.groups())
        if not match or not 1 <= self.first <= self.last <= LONGEST_STEP:
            fail(f"--steps: expected FIRST:LAST, counted from 1, or all, found '{self.steps}'")
