"""What the tests of sidestream-trace share: the program, small traces, and a reader of its output."""

import contextlib
import csv
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("SIDESTREAM_BUILD", ROOT / "build/release")) / "sidestream-trace"
sys.path.append(str(ROOT / "tests/launch/training"))
BASE_NS = 1_700_000_000_000_000_000


def run(*words, folder=None):
    return subprocess.run([str(PROGRAM), *map(str, words)], text=True, capture_output=True, cwd=folder, timeout=300)


def complete(category, name, start_us, length_us, thread=1, process=1, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start_us, "dur": length_us,
            "args": arguments}


def trace(events, rank=0, world_size=1, **others):
    return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size},
            "baseTimeNanoseconds": BASE_NS, "traceEvents": events, **others}


def step_events(rank, first=3, steps=3, length_us=1000, late_us=0):
    """Steps with an operator, its launch and arrow, a kernel, a copy, and an all-reduce that all ranks leave together."""
    events = []
    for step in range(first, first + steps):
        at, number = step * length_us, step * 10
        events += [
            complete("user_annotation", f"ProfilerStep#{step}", at, length_us),
            complete("user_annotation", "forward", at, 500),
            complete("cpu_op", "aten::mm", at + 10, 20, **{"Input Dims": [[64, 32], [32, 16]],
                                                           "Input type": ["float", "float"], "External id": number}),
            complete("cuda_runtime", "cudaLaunchKernel", at + 12, 5, correlation=number, **{"External id": number}),
            {"ph": "s", "id": number, "pid": 1, "tid": 1, "ts": at + 12, "cat": "ac2g", "name": "ac2g"},
            complete("kernel", "gemm", at + 30, 400.125, thread=7, process=0, stream=7, correlation=number, device=0,
                     **{"External id": number}),
            {"ph": "f", "id": number, "pid": 0, "tid": 7, "ts": at + 30, "cat": "ac2g", "name": "ac2g", "bp": "e"},
            complete("gpu_memcpy", "Memcpy HtoD", at + 700, 50, thread=7, process=0, stream=7, device=0, bytes=4096,
                     correlation=number + 1),
            complete("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 400 + late_us, 200 - late_us, thread=9,
                     process=0, stream=9, device=0, correlation=number + 2,
                     **{"Collective name": "allreduce", "In msg nelems": 1000, "Group size": 2, "dtype": "Float",
                        "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": step})]
    return events


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read_csv(path):
    """Rows as dictionaries; every row has as many cells as the header."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    assert all(len(row) == len(rows[0]) for row in rows), path
    return [dict(zip(rows[0], row)) for row in rows[1:]]


class TraceTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="sidestream-trace-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def two_ranks(self, **options):
        for rank in range(2):
            write(self.folder / f"in/rank-{rank}.json",
                  trace(step_events(rank, late_us=100 * rank, **options), rank, 2))
        return self.folder / "in"

    def export(self, script):
        """A database of Nsight Systems as a script makes it, in place of the one before."""
        path = self.folder / "export.sqlite"
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript(script)
        return path

    def succeed(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def fail_with(self, code, pattern, *words):
        """Exit code, one line on standard error that says what is wrong, nothing on standard output."""
        done = run(*words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        return done

    def report(self, *inputs):
        file = self.folder / "report.json"
        self.succeed("report", *inputs, "--quiet", "--json", file)
        return json.loads(file.read_text())

    def refused(self, pattern, *inputs):
        self.fail_with(3, pattern, "report", *inputs)

    def warning_of(self, *inputs):
        return "\n".join(self.report(*inputs)["import"]["warnings"])
