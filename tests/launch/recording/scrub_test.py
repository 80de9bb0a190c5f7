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

    def windows(self):
        paths = []
        for window in (5, 10):
            folder = self.root / f"trace/step_{window:08}"
            folder.mkdir(parents=True)
            (folder / "clock.json").write_text(json.dumps({"schema": 1, "host": "secret-host", "ranks": [{"rank": 0, "boot_id": "0a"}]}))
            for rank in range(2):
                paths.append(folder / f"host_{rank:05}.{window}.pt.trace.json")
                event = {"ph": "X", "name": "k", "ts": window, "dur": 1}
                paths[-1].write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": [event]}))
        return paths

    def test_windows_keep_their_folders_and_clocks(self):
        done = scrub(*self.windows(), "--output", self.output)

        self.assertEqual(done.returncode, 0, done.stderr)
        found = sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file())
        self.assertEqual(found, [f"step_{window:08}/{name}" for window in (5, 10) for name in
                                 ["clock.json"] + [f"node0_{rank:05}.{window}.pt.trace.json.gz" for rank in range(2)]])
        clock = json.loads((self.output / "step_00000005/clock.json").read_text())
        self.assertEqual(clock, {"schema": 1, "ranks": [{"rank": 0, "boot_id": "0a"}]})

    def test_nothing_is_overwritten(self):
        path = self.kineto()
        scrub(path, "--output", self.output)
        before = next(self.output.iterdir()).read_bytes()
        path.write_text(path.read_text().replace("aten::mm", "aten::bmm"))

        done = scrub(path, "--output", self.output)

        self.assertEqual(done.returncode, 1)
        self.assertIn("is there already", done.stderr)
        self.assertEqual(next(self.output.iterdir()).read_bytes(), before)

    def test_damaged_files_are_refused_in_words(self):
        whole = gzip.compress(self.kineto().read_bytes())
        damaged = {"cut.json": b'{"traceEvents":[{"ph"', "cut.json.gz": whole[:len(whole) // 2], "no.json.gz": b"text",
                   "cut.sqlite": b"SQLite format 3\0 and then something else"}
        for name, content in damaged.items():
            path = self.root / name
            path.write_bytes(content)

            done = scrub(path, "--output", self.output)

            self.assertEqual(done.returncode, 1, name)
            self.assertIn(f"{name}: expected a whole trace", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(list(self.output.iterdir()), [])

    def test_processes_without_events_go(self):
        path = self.root / "rank_00000.sqlite"
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.execute("CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)")
        database.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER)")
        database.execute("INSERT INTO StringIds VALUES (1, 'train'), (2, 'my-secret-daemon')")
        database.execute("INSERT INTO PROCESSES VALUES (?, 7, 'train'), (?, 8, 'my-secret-daemon')", (7 << 24, 8 << 24))
        database.execute("INSERT INTO NVTX_EVENTS VALUES (1, 2, ?)", ((7 << 24) + 9,))
        database.commit()
        database.close()

        done = scrub(path, "--output", self.output)

        self.assertEqual(done.returncode, 0, done.stderr)
        copy = self.output / "rank_00000.sqlite"
        self.assertNotIn(b"my-secret-daemon", copy.read_bytes())
        self.assertEqual(sqlite3.connect(copy).execute("SELECT pid, name FROM PROCESSES").fetchall(), [(7, "train")])

    def test_missing_file(self):
        self.assertNotEqual(scrub(self.root / "none.json", "--output", self.output).returncode, 0)


if __name__ == "__main__":
    unittest.main()
