"""launch/scrub-trace: what says whose machine made a trace is gone, what the timeline needs is as it was."""

import gzip
import json
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "launch/scrub-trace"
SECRETS = ["secret-host", "/mnt/alice", "alice"]


def scrub(*arguments):
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True)


class ScrubTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="sidestream-scrub-")
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        self.output = self.root / "out"

    def kineto(self, **more):
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 6, "ts": 1.125, "dur": 2.5,
                 "args": {"Call stack": "/mnt/alice/project/train.py(3): main;<built-in method a/b>", "host": "secret-host"}}
        trace = {"schemaVersion": 1, "traceName": "/mnt/alice/x.json", "distributedInfo": {"rank": 3, "world_size": 4},
                 "hostname": "secret-host", "traceEvents": [event], **more}
        path = self.root / "secret-host_rank3.json"
        path.write_text(json.dumps(trace))
        return path

    def test_kineto(self):
        done = scrub(self.kineto(), "--output", self.output, "--also", "secret-host", "--also", "alice")

        self.assertEqual(done.returncode, 0, done.stderr)
        (written,) = self.output.iterdir()
        self.assertEqual(written.name, "node0_00003.pt.trace.json.gz")
        text = gzip.open(written, "rt").read()
        for secret in SECRETS:
            self.assertNotIn(secret, text)
        trace = json.loads(text)
        self.assertEqual(trace["distributedInfo"], {"rank": 3, "world_size": 4})
        (event,) = trace["traceEvents"]
        self.assertEqual((event["name"], event["ts"], event["dur"], event["tid"]), ("aten::mm", 1.125, 2.5, 6))
        self.assertEqual(event["args"]["Call stack"], "train.py(3): main;<built-in method a/b>")
        self.assertNotIn("traceName", trace)

    def test_names_of_kernels_stay(self):
        name = "void at::native::vectorized_elementwise_kernel<4, at::native::add<float>(a/b)>"
        scrub(self.kineto(traceEvents=[{"ph": "X", "name": name, "ts": 1, "dur": 1}]), "--output", self.output)

        (written,) = self.output.iterdir()
        self.assertEqual(json.loads(gzip.open(written, "rt").read())["traceEvents"][0]["name"], name)

    def test_what_is_left_is_refused(self):
        path = self.kineto(traceEvents=[{"ph": "X", "name": "lambda at </mnt/alice/x.cpp>", "ts": 1, "dur": 1}])

        done = scrub(path, "--output", self.output)

        self.assertEqual(done.returncode, 1)
        self.assertIn("still holds a path", done.stderr)
        self.assertEqual(list(self.output.iterdir()), [])

    def test_nsys(self):
        path = self.root / "rank_00001.sqlite"
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT, value TEXT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
        database.execute("INSERT INTO StringIds VALUES (1, '/mnt/alice/bin/train'), (2, 'gemm_kernel')")
        database.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'DeviceEnvironment', 'USER=alice')")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20)")
        database.commit()
        database.close()
        before = path.read_bytes()

        done = scrub(path, "--output", self.output)

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(path.read_bytes(), before)
        copy = self.output / "rank_00001.sqlite"
        self.assertNotIn(b"alice", copy.read_bytes())
        database = sqlite3.connect(copy)
        self.assertEqual(database.execute("SELECT value FROM StringIds ORDER BY id").fetchall(), [("train",), ("gemm_kernel",)])
        self.assertEqual(database.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall(), [(10, 20)])

    def test_missing_file(self):
        self.assertNotEqual(scrub(self.root / "none.json", "--output", self.output).returncode, 0)


if __name__ == "__main__":
    unittest.main()
