"""launch/nsys-collect against stubs of nsys, srun, nvidia-smi and the program: which flags the recorder gets, how ranks
are started, which files come out. What a real nsys records is in nsys_test.py."""

import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "launch/scripts"))
sys.path.insert(0, str(ROOT / "tests/launch/training"))
sys.dont_write_bytecode = True
from marked_processes import processes_with  # noqa: E402
from nsys_reports import steps_in  # noqa: E402
from running import completed, running  # noqa: E402

NSYS = """#!/usr/bin/env python3
import itertools, os, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("NVIDIA Nsight Systems version 2022.4.2.1-df9881f")
elif words == ["profile", "--help"]:
    print("--cuda-graph-trace=")
elif words[0] == "profile":
    flags = list(itertools.takewhile(lambda word: word.startswith("--"), words[1:]))
    output = next(flag for flag in flags if flag.startswith("--output=")).split("=", 1)[1]
    program = words[1 + len(flags):]
    if os.environ.get("RECORDS_NOTHING") != "yes":
        with open(output + ".nsys-rep", "w") as report:
            print(*flags, sep="\\n", file=report)
            print(*program, file=report)
            for name in ("SIDESTREAM_CAPTURE_STEPS", "SIDESTREAM_CAPTURE_BY"):
                print(name, os.environ.get(name, "not set"), file=report)
    sys.exit(subprocess.run(program).returncode)
elif words[0] == "export":
    if os.environ.get("CUT_SHORT", "none") in words[-1]:
        sys.exit(1)
    open(words[words.index("--output") + 1], "w").write(words[-1])
"""
SRUN = """#!/usr/bin/env python3
import os, subprocess, sys
flags = [word for word in sys.argv[1:] if word.startswith("--")]
open(os.environ["FOLDER"] + "/srun", "w").write(" ".join(flags))
ranks = int(next(flag for flag in flags if flag.startswith("--ntasks=")).split("=")[1])
command = sys.argv[1 + len(flags):]
sys.exit(max([subprocess.run(command, env=dict(os.environ, SLURM_PROCID=str(r))).returncode for r in range(ranks)]))
"""
# In place of ranks: ends when it is asked to, with SLOW=yes when it is let go.
PATIENT_SRUN = """#!/bin/sh
stop() {
  touch "$FOLDER/asked"
  until [ "$SLOW" != yes ] || [ -e "$FOLDER/go" ]; do sleep 0.05; done
  exit 75
}
trap stop USR1 TERM
touch "$FOLDER/out/rank_00000.nsys-rep" "$FOLDER/up"
while :; do sleep 0.05; done
"""
# Asks the script to stop before it knows what it has started.
ASKED_EARLY = """
import os, pathlib, runpy, signal, subprocess, sys, time
real = subprocess.Popen
def popen(words, **how):
    process = real(words, **how)
    if "srun" in words:
        while not pathlib.Path(os.environ["FOLDER"], "up").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
    return process
subprocess.Popen = popen
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
PROGRAM = "#!/bin/sh\nexit ${PROGRAM_CODE:-0}\n"


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)


class NsysCollectTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "bin").mkdir()
        (self.folder / "build").mkdir()
        script(self.folder / "bin/nsys", NSYS)
        script(self.folder / "bin/srun", SRUN)
        script(self.folder / "build/sidestream", PROGRAM)

    def tearDown(self):
        self.temporary.cleanup()

    def environment(self, **more):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "OMPI_COMM", "PMI"))}
        return env | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "FOLDER": str(self.folder)} | more

    def command(self, *words):
        return [ROOT / "launch/nsys-collect", "--output", self.folder / "out", "--build", self.folder / "build", *words]

    def collect(self, *words, **more):
        return subprocess.run(self.command(*words), env=self.environment(**more), text=True, capture_output=True)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"never happened: {what}")
            time.sleep(0.02)

    def reports(self):
        return {file.name: file.read_text().splitlines() for file in sorted((self.folder / "out").glob("*.nsys-rep"))}

    def test_ranks_under_mpirun_have_a_report_and_a_database_each(self):
        done = self.collect("-np", "2", "--steps", "20:30", "--", "train", "--steps", "40")

        self.assertEqual(done.returncode, 0, done.stderr)
        reports = self.reports()
        self.assertEqual(list(reports), ["rank_00000.nsys-rep", "rank_00001.nsys-rep"])
        for name, lines in reports.items():
            self.assertTrue({"--trace=nvtx,mpi,cuda", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node",
                             "--capture-range=nvtx", "--capture-range-end=stop",
                             "--nvtx-capture=capture@sidestream"} <= set(lines), lines)
            self.assertTrue(any(line.endswith(f"{self.folder}/build/sidestream train --steps 40") for line in lines), lines)
            self.assertIn("SIDESTREAM_CAPTURE_STEPS 20:30", lines)
            self.assertIn("SIDESTREAM_CAPTURE_BY not set", lines)
            self.assertTrue((self.folder / "out" / name).with_suffix(".sqlite").exists())

    def test_slurm_starts_with_srun_and_names_files_by_its_rank(self):
        done = self.collect("-np", "3", "--steps", "2:4", "--slurm", "--no-export", "--", "train")

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.reports()), [f"rank_0000{rank}.nsys-rep" for rank in range(3)])
        self.assertEqual((self.folder / "srun").read_text(), "--mpi=pmix --ntasks=3 --kill-on-bad-exit=1")
        self.assertFalse(list((self.folder / "out").glob("*.sqlite")))

    def test_all_steps_need_no_window_and_own_flags_come_last(self):
        done = self.collect("-np", "1", "--steps", "all", "--osrt", "--nsys-flag", "--sample=cpu", "--", "train")

        self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.reports()["rank_00000.nsys-rep"]
        self.assertIn("--trace=nvtx,mpi,cuda,osrt", lines)
        self.assertLess(lines.index("--sample=none"), lines.index("--sample=cpu"))
        self.assertFalse([line for line in lines if line.startswith("--capture-range")])
        self.assertIn("SIDESTREAM_CAPTURE_STEPS not set", lines)

    def test_cuda_profiler_tells_the_program_and_wants_a_gpu(self):
        script(self.folder / "bin/nvidia-smi", "#!/bin/sh\nexit 9\n")
        done = self.collect("-np", "1", "--steps", "2:4", "--cuda-profiler", "--", "train")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no GPU here", done.stderr)

        script(self.folder / "bin/nvidia-smi", "#!/bin/sh\necho 'GPU 0: Stub'\n")
        done = self.collect("-np", "1", "--steps", "2:4", "--cuda-profiler", "--", "train")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.reports()["rank_00000.nsys-rep"]
        self.assertIn("--capture-range=cudaProfilerApi", lines)
        self.assertIn("SIDESTREAM_CAPTURE_BY cuda-profiler", lines)
        self.assertNotIn("--nvtx-capture=capture@sidestream", lines)

    def test_code_of_the_run_comes_back(self):
        done = self.collect("-np", "2", "--steps", "2:4", "--slurm", "--", "train", PROGRAM_CODE="3")

        self.assertEqual(done.returncode, 3)

    def test_report_that_is_cut_short_costs_no_other(self):
        for code in "3", "0":
            done = self.collect("-np", "2", "--steps", "2:4", "--slurm", "--overwrite", "--", "train", PROGRAM_CODE=code, CUT_SHORT="rank_00000")

            self.assertEqual(done.returncode, int(code) or 1, done.stderr)
            self.assertIn("rank_00000.nsys-rep could not be exported", done.stderr)
            self.assertEqual([file.name for file in (self.folder / "out").glob("*.sqlite")], ["rank_00001.sqlite"])

    def test_run_that_recorded_nothing_says_so(self):
        done = self.collect("-np", "1", "--steps", "200:300", "--", "train", RECORDS_NOTHING="yes")

        self.assertEqual(done.returncode, 2)
        self.assertIn("did the run reach step 200?", done.stderr)

    def test_run_that_failed_before_anything_was_recorded_keeps_its_code(self):
        done = self.collect("-np", "1", "--steps", "2:3", "--", "train", RECORDS_NOTHING="yes", PROGRAM_CODE="3")

        self.assertEqual(done.returncode, 3)
        self.assertIn("the run failed (3)", done.stderr)

    def test_earlier_recording_is_kept_unless_it_is_to_be_replaced(self):
        words = ("-np", "1", "--steps", "2:3", "--", "train")
        self.collect(*words)
        (self.folder / "out/recording-notes").mkdir()
        before = self.reports()

        refused = self.collect(*words)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--overwrite", refused.stderr)
        self.assertEqual(self.reports(), before)
        replaced = self.collect("--overwrite", *words)
        self.assertEqual(replaced.returncode, 0, replaced.stderr)
        self.assertTrue((self.folder / "out/recording-notes").exists())

    def test_a_request_right_after_the_start_is_passed_on(self):
        script(self.folder / "bin/srun", PATIENT_SRUN)
        command = self.command("-np", "1", "--steps", "2:3", "--slurm", "--no-export", "--", "train")
        done = completed([sys.executable, "-c", ASKED_EARLY, *command], 60, self.environment(), stderr=subprocess.PIPE)

        self.assertEqual((done.returncode, (self.folder / "asked").exists()), (75, True), done.stderr)

    def test_its_own_death_ends_the_ranks_which_keep_the_folder_until_then(self):
        script(self.folder / "bin/srun", PATIENT_SRUN)
        words = ("-np", "1", "--steps", "2:3", "--slurm", "--no-export", "--", "train")
        with running(self.command(*words), self.environment(SLOW="yes"), stderr=subprocess.DEVNULL) as process:
            self.wait_for((self.folder / "up").exists, "the ranks are up")
            process.kill()
            process.wait()
            self.wait_for((self.folder / "asked").exists, "the ranks are asked to stop")
            refused = self.collect("--overwrite", *words)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("another call records into", refused.stderr)
            (self.folder / "go").touch()
            self.wait_for(lambda: not processes_with(f"FOLDER={self.folder}"), "the ranks have ended")

        script(self.folder / "bin/srun", SRUN)
        self.assertEqual(self.collect("--overwrite", *words).returncode, 0)

    def test_calls_that_make_no_sense_are_refused(self):
        for words, message in [(["-np", "2", "--", "train"], "--steps is missing"),
                               (["-np", "2", "--steps", "9-3", "--", "train"], "FIRST:LAST"),
                               (["-np", "2", "--steps", "5:2", "--", "train"], "FIRST:LAST"),
                               (["-np", "2", "--steps", "1:99999999999999999999", "--", "train"], "FIRST:LAST"),
                               (["-np", "0", "--steps", "1:2", "--", "train"], "-np"),
                               (["-np", "2", "--steps", "1:2", "--hosts", "--", "train"], "--hosts needs a value"),
                               (["-np", "2", "--steps", "1:2", "--hosts", "", "--", "train"], "--hosts and --hostfile: expected"),
                               (["-np", "2", "--steps", "1:2", "--hostfile", "", "--", "train"], "--hosts and --hostfile: expected"),
                               (["-np", "2", "--steps", "1:2", "--"], "nothing to start"),
                               (["-np", "2", "--steps", "1:2", "--frames", "--", "train"], "--frames"),
                               (["-np", "2", "--steps", "1:2", "--slurm", "--hosts", "a:1", "--", "train"], "--hosts")]:
            done = self.collect(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(message, done.stderr)

    def test_steps_are_counted_in_a_folder_of_any_name(self):
        folder = self.folder / "a#b?c%41"
        folder.mkdir()
        base = sqlite3.connect(folder / "rank_00000.sqlite")
        base.execute("create table StringIds (id integer, value text)")
        base.execute("create table NVTX_EVENTS (text text, textId integer, end integer)")
        base.executemany("insert into NVTX_EVENTS values (?, null, 5)", [("ProfilerStep#1",), ("ProfilerStep#2",), ("forward",)])
        base.commit()
        base.close()

        self.assertEqual(steps_in(folder / "rank_00000.sqlite"), 2)
        self.assertFalse((self.folder / "a").exists())


if __name__ == "__main__":
    unittest.main()
