"""launch/scrub-trace: what says whose machine made a trace is gone, what the timeline needs is as it was."""

import gzip
import json
import pathlib
import resource
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "launch/scrub-trace"
SECRETS = ["secret-host", "/mnt/alice", "alice"]


def scrub(*arguments, **more):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, **more)


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

    def test_help_that_cannot_be_written_is_a_failure(self):
        done = scrub("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("usage: scrub-trace") and "Exit codes: 0" in done.stdout, done.stdout)
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, SCRIPT, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "scrub-trace: cannot write to standard output: No space left on device\n"))

    def test_names_of_kernels_stay(self):
        name = "void at::native::vectorized_elementwise_kernel<4, at::native::add<float>(a/b)>"
        scrub(self.kineto(traceEvents=[{"ph": "X", "name": name, "ts": 1, "dur": 1}]), "--output", self.output)

        (written,) = self.output.iterdir()
        self.assertEqual(json.loads(gzip.open(written, "rt").read())["traceEvents"][0]["name"], name)

    def test_what_is_left_is_refused(self):
        path = self.kineto(traceEvents=[{"ph": "X", "name": "lambda at </mnt/alice/x.cpp>", "ts": 1, "dur": 1}])

        done = scrub(path, "--output", self.output)

        self.assertEqual(done.returncode, 3)
        self.assertIn("still holds a path", done.stderr)
        self.assertFalse(self.output.exists())

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

    def test_clocks_of_another_window_are_none_of_these(self):
        for window, expected in ("1", 0), ("2", 3):
            folder = self.root / window
            folder.mkdir()
            (folder / "clock.json").write_text(json.dumps({"schema": 1, "ranks": [{"rank": 0, "boot_id": window}]}))
            (folder / f"host_0.{window}.pt.trace.json").write_text(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": []}))
            done = scrub(folder / f"host_0.{window}.pt.trace.json", "--output", self.output)
            self.assertEqual(done.returncode, expected, done.stderr)
        self.assertIn("an --output of its own", done.stderr)
        self.assertEqual(sorted(file.name for file in self.output.iterdir()), ["clock.json", "node0_00000.1.pt.trace.json.gz"])

    def test_nothing_is_overwritten(self):
        path = self.kineto()
        scrub(path, "--output", self.output)
        before = next(self.output.iterdir()).read_bytes()
        path.write_text(path.read_text().replace("aten::mm", "aten::bmm"))

        done = scrub(path, "--output", self.output)

        self.assertEqual(done.returncode, 2)
        self.assertIn("is there already", done.stderr)
        self.assertEqual(next(self.output.iterdir()).read_bytes(), before)

    def refusals(self, files):
        """One call for all of them: each has its line, and no copy."""
        for name, content in files.items():
            (self.root / name).write_bytes(content)

        done = scrub(*[self.root / name for name in files], "--output", self.output)

        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual([path for path in self.output.rglob("*") if path.is_file()], [])
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), len(files), done.stderr)
        return {name: line.split(f"{self.root / name}: ")[1] for name, line in zip(files, lines)}

    def test_damaged_files_are_refused_in_words(self):
        whole = gzip.compress(self.kineto().read_bytes())
        database = self.root / "whole.sqlite"
        with sqlite3.connect(database) as base:
            base.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, text TEXT)")
            base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, 'step')", [(one,) for one in range(5000)])

        said = self.refusals({"cut.json": b'{"traceEvents":[{"ph"', "cut.json.gz": whole[:len(whole) // 2], "no.json.gz": b"text",
                              "no.sqlite": b"SQLite format 3\0 and then something else",
                              "cut.sqlite": database.read_bytes()[:20000]})

        for name, line in said.items():
            self.assertIn("expected a whole trace, found one that cannot be read: ", line, name)

    def test_what_is_no_trace_is_refused_in_words(self):
        events = b'"traceEvents": []'
        self.assertEqual(self.refusals({
            "null.json": b"null", "three.json": b"3", "empty.json": b"{}", "deep.json": b"[" * 5000 + b"]" * 5000,
            "info.json": b'{"distributedInfo": null, %s}' % events, "list.json": b'{"distributedInfo": {"rank": [1]}, %s}' % events,
            "negative.json": b'{"distributedInfo": {"rank": -1}, %s}' % events}), {
            "null.json": "expected an object or a list of events, found null",
            "three.json": "expected an object or a list of events, found 3",
            "empty.json": "expected a list as traceEvents, found null",
            "deep.json": "expected a trace, found values nested too deeply for one",
            "info.json": "expected an object as distributedInfo, found null",
            "list.json": "distributedInfo: expected a rank from 0 to 1048575, found a list",
            "negative.json": "distributedInfo: expected a rank from 0 to 1048575, found -1"})

    def test_a_damaged_clock_is_named(self):
        path = self.kineto()
        (self.root / "clock.json").write_text("null")

        done = scrub(path, "--output", self.output)

        self.assertEqual((done.returncode, done.stderr), (3, f"scrub-trace: {self.root}/clock.json: expected an object, found null\n"))

    def test_flags_are_refused_in_words(self):
        path = self.kineto()
        cases = {("--output", path): f"--output: expected a folder, found the file {path}",
                 ("--output", self.output, "--also", ""): "--also: expected a word to take out, found ''"}
        for flags, said in cases.items():
            done = scrub(path, *flags)

            self.assertEqual((done.returncode, done.stderr), (2, f"scrub-trace: {said}\n"))
        self.assertFalse(self.output.exists())

    def test_a_copy_that_cannot_be_written_leaves_nothing(self):
        """A limit of the size of files stands for a full disk."""
        noise = [{"ph": "X", "name": f"{one * 7919 % 65536:x}", "ts": one * one, "dur": 1} for one in range(4000)]
        trace = self.kineto(traceEvents=noise)
        database = self.root / "rank_00007.sqlite"
        with sqlite3.connect(database) as base:
            base.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, text TEXT)")
            base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, 'step')", [(one,) for one in range(5000)])

        done = scrub(trace, database, "--output", self.output,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))

        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("writing the copy"), 2, done.stderr)
        self.assertNotIn("cannot be read", done.stderr)
        self.assertEqual(list(self.output.iterdir()), [])

    def test_keys_stay(self):
        args = {"name": "name of alice", "stream": 7}
        path = self.kineto(traceEvents=[{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": args}])

        done = scrub(path, "--output", self.output, "--also", "name", "--also", "alice", "--also", "stream", "--also", "X")

        self.assertEqual(done.returncode, 0, done.stderr)
        (event,) = json.loads(gzip.open(next(self.output.iterdir()), "rt").read())["traceEvents"]
        self.assertEqual(event, {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"name": "x of x", "stream": 7}})

    def test_a_key_with_a_name_is_refused(self):
        done = scrub(self.kineto(traceEvents=[{"ph": "C", "name": "loss", "ts": 1, "args": {"loss of alice": 1}}]),
                     "--output", self.output, "--also", "alice")

        self.assertEqual(done.returncode, 3)
        self.assertIn("the key 'loss of alice' holds what should go", done.stderr)
        self.assertFalse(self.output.exists())

    def test_missing_file(self):
        bad = self.root / "bad.json"
        bad.write_text("3")

        done = scrub(bad, self.root / "none.json", self.kineto(), "--output", self.output)

        self.assertEqual(done.returncode, 3)
        self.assertIn("none.json: expected a trace, found no file", done.stderr)
        self.assertIn("bad.json: expected an object", done.stderr)  # one missing file hides nothing of the others
        self.assertEqual([path.name for path in self.output.iterdir()], ["node0_00003.pt.trace.json.gz"])


if __name__ == "__main__":
    unittest.main()
