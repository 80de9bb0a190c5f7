"""Traces load in HolisticTraceAnalysis 0.5.0 and torch-tb-profiler 0.4.3, with the ranks and steps that we see in them:
generated ones, and those that `train --profile` records where this build can."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from support import PROGRAM, ROOT, TraceTest

sys.path.insert(0, str(ROOT / "tests/reference"))
import own_environment  # noqa: E402

TRAINER = PROGRAM.parent / "sidestream"


def trainer_records():
    if not TRAINER.exists():
        return False
    return "--profile " in subprocess.run([TRAINER, "train", "--help"], text=True, capture_output=True).stdout


class ReadersTest(TraceTest):
    @classmethod
    def setUpClass(cls):
        cls.python = own_environment.python_with(ROOT / "tests/reference/readers.txt")

    def read_with_others(self, folder):
        done = subprocess.run([self.python, ROOT / "tests/reference/read_with_others.py", folder], text=True,
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def agree(self, folder):
        """Their ranks and steps are ours. HTA leaves out the last step of a trace."""
        report, others = self.report(folder), self.read_with_others(folder)
        steps = {}
        for step in report["steps"]:
            steps.setdefault(str(step["rank"]), []).append(step["step"])
        self.assertGreater(len(steps), 1)
        self.assertEqual({rank: seen["steps"] for rank, seen in others["hta"].items()},
                         {rank: numbers[:-1] for rank, numbers in steps.items()})
        self.assertEqual({rank: seen["steps"] for rank, seen in others["tensorboard"].items()},
                         {rank: [str(number) for number in numbers] for rank, numbers in steps.items()})
        self.assertEqual({seen["world_size"] for seen in others["tensorboard"].values()}, {report["world_size"]})
        return others

    def test_generated_traces(self):
        others = self.agree(ROOT / "tests/data/traces/generated_3ranks")
        for seen in others["hta"].values():  # HTA takes collectives beyond the last step along
            self.assertGreater(seen["overlap_percent"], 80)

    @unittest.skipUnless(trainer_records(), "this build has no train --profile")
    def test_traces_of_the_trainer(self):
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(
            [ROOT / "launch/run", "-np", "2", "--build", PROGRAM.parent, "--", "train", "--model", "gpt2-tiny", "--data",
             "synthetic", "--sequence-length", "32", "--batch-size-per-rank", "2", "--threads", "1", "--device", "cpu",
             "--steps", "6", "--profile", "wait=1,warmup=1,active=3,repeat=1", "--run-dir", self.folder / "run"],
            text=True, capture_output=True, timeout=240, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        folder, = pathlib.Path(self.folder / "run/trace").iterdir()
        self.agree(folder)


if __name__ == "__main__":
    unittest.main()
