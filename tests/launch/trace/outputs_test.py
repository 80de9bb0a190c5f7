"""Where the commands write: never over what they read, never over what is no file, and the same figure everywhere."""

import hashlib
import json
import os
import re
import subprocess
import threading
import unittest

from support import PROGRAM, TraceTest, read_csv, step_events, trace, write


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class OutputTest(TraceTest):
    def test_inputs_are_not_written_over(self):
        folder = self.two_ranks()
        file = folder / "rank-0.json"
        before = hash_of(file)
        for words in (["merge", folder, "-o", file], ["merge", file, "-o", file], ["report", folder, "--json", file],
                      ["report", file, "--html", file], ["roofline", folder, "--json", file],
                      ["compare", folder, folder, "--json", file]):
            with self.subTest(words[0]):
                self.fail_with(2, "rank-0.json is read, and would be written over", *words)
                self.assertEqual(hash_of(file), before)

    def test_records_of_the_run_are_not_written_over(self):
        """Whatever of the run is given: the report reads them."""
        run = self.folder / "run"
        trace_file = write(run / "trace/step_3/rank-0.pt.trace.json", trace(step_events(0)))
        write(run / "trace/step_3/clock.json", {"ranks": []})
        write(run / "metrics.jsonl", '{"event":"step","step":3}\n')
        write(run / "run.json", {})
        write(run / "checkpoints/step_8/manifest.json", {})
        for given in (trace_file, trace_file.parent, run / "trace", run):
            for name in ("trace/step_3/clock.json", "metrics.jsonl", "run.json", "checkpoints/step_8/manifest.json"):
                with self.subTest(given=given.name, output=name):
                    before = hash_of(run / name)
                    self.fail_with(2, "is read, and would be written over", "report", given, "--json", run / name)
                    self.assertEqual(hash_of(run / name), before)
        self.succeed("report", trace_file, "--quiet", "--json", run / "report.json")

    def test_counters_of_kernels_are_not_written_over(self):
        traces = self.two_ranks()
        counters = write(self.folder / "tables/kernels.csv", "of ncu\n")
        before = hash_of(counters)
        for words in (["report", traces, "--ncu", counters, "--json", counters],
                      ["report", traces, "--ncu", counters, "--csv", counters.parent],
                      ["roofline", traces, "--ncu", counters, "--html", counters]):
            self.fail_with(2, "kernels.csv is read, and would be written over", *words)
            self.assertEqual(hash_of(counters), before)
        self.fail_with(2, "kernels.csv is given for two outputs", "report", traces, "--json", counters, "--csv",
                       counters.parent)

    def test_a_comparison_has_the_reports_that_its_page_is_drawn_from(self):
        base, new = self.folder / "a", self.folder / "b"
        for folder, late_us in (base, 100), (new, 120):
            write(folder / "rank-0.json", trace(step_events(0, late_us=late_us)))
        self.succeed("compare", f"{base}/", f"{new}/", "--json", self.folder / "ab.json", "--html", self.folder / "ab.html", "--quiet")
        compared = json.loads((self.folder / "ab.json").read_text())
        for side, folder in (("base", base), ("new", new)):
            self.succeed("report", folder, "--json", self.folder / "one.json", "--quiet")
            self.assertEqual(compared["reports"][side], json.loads((self.folder / "one.json").read_text()))
        self.assertIn("<title>b against a", (self.folder / "ab.html").read_text())

    def test_one_name_for_two_outputs(self):
        folder, file = self.two_ranks(), self.folder / "both"
        self.fail_with(2, "both is given for two outputs", "report", folder, "--json", file, "--html", file)
        self.assertFalse(file.exists())

    def test_another_file_in_the_folder_of_the_traces_is_fine(self):
        folder = self.two_ranks()
        for _ in range(2):
            self.succeed("report", folder, "--quiet", "--json", folder / "report.json")

    def test_an_output_beyond_the_limit_of_files_is_a_message(self):
        """`ulimit -f`: by itself the system ends such a process without a word."""
        for words in ["report", "--html"], ["merge", "-o"]:
            command = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", PROGRAM, words[0], self.two_ranks(), words[1], self.folder / "out.html"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("File too large", done.stderr)
            self.assertEqual([file.name for file in self.folder.glob("*out.html*")], [])

    def test_a_full_disk_behind_standard_output_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "report", self.two_ranks()], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sidestream-trace: cannot write to standard output", done.stderr)

    def test_a_folder_is_no_output(self):
        folder = self.two_ranks()
        (self.folder / "out").mkdir()
        self.fail_with(2, "out: expected the name of a file, found a folder", "merge", folder, "-o", self.folder / "out")
        self.fail_with(2, "out: expected the name of a file, found a folder", "report", folder, "--json", self.folder / "out")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["in", "out"])

    def test_a_pipe_stays_a_pipe(self):
        folder = self.two_ranks()
        for words in (["report", folder, "--quiet", "--json"], ["merge", folder, "-o"]):
            pipe = self.folder / f"pipe-{words[0]}"
            os.mkfifo(pipe)
            got = []
            reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
            reader.start()
            self.succeed(*words, pipe)
            reader.join(timeout=60)
            self.assertTrue(pipe.is_fifo())
            self.assertIsInstance(json.loads(got[0]), dict)

    def test_idle_time_is_the_same_figure_in_every_view(self):
        folder = self.two_ranks()
        json_file, page, tables = self.folder / "r.json", self.folder / "r.html", self.folder / "csv"
        text = self.succeed("report", folder, "--json", json_file, "--html", page, "--csv", tables).stdout
        report = json.loads(json_file.read_text())
        steps = [step["idle_ns"] for step in report["steps"]]
        mean_ns = sum(steps) / len(steps)
        part = next(part for part in report["overview"]["mean_step"] if part["part"] == "idle")
        self.assertAlmostEqual(part["time_ns"], mean_ns, delta=1)
        self.assertEqual([int(row["idle_ns"]) for row in read_csv(tables / "steps.csv")], steps)
        self.assertEqual([int(row["time_ns"]) for row in read_csv(tables / "overview.csv") if row["part"] == "idle"],
                         [part["time_ns"]])
        shown = re.search(r"^idle +([0-9.]+) us", text, re.MULTILINE)
        self.assertTrue(shown, text)
        self.assertAlmostEqual(float(shown[1]), mean_ns / 1e3, delta=0.1)
        self.assertIn(f'"idle_ns":{steps[0]}', page.read_text().replace(" ", ""))


if __name__ == "__main__":
    unittest.main()
