"""Bad input to `sidestream-trace report`: a clear message and exit code 3, or a warning where the rest is usable."""

import gzip
import json
import os
import subprocess
import unittest

from support import BASE_NS, PROGRAM, TraceTest, complete, run, step_events, trace, write  # and puts the next on the path
from running import running

WHOLE = json.dumps(trace(step_events(0)))
RUN_RECORD = {"schema": 1, "version": "0.1.0", "build": "b", "machine": {"processor": "P", "nodes": 1, "cores": 2}, "command_line": "train",
              "world_size": 1, "threads_per_rank": 1, "backend": "mpi", "precision": "fp32", "parameters": 10,
              "exit_code": 0, "performance": {"steps": 2, "step_ms_p50": 2, "tokens_per_s": 9, "exposed_comm_ms_p50": 0, "reader_cost_ms_p50": 0}}


class UnusableTest(TraceTest):
    def test_truncated_gzip(self):
        packed = gzip.compress(json.dumps(trace(step_events(0, steps=500))).encode())
        (self.folder / "rank-0.json.gz").write_bytes(packed[:len(packed) // 2])
        self.refused(r"rank-0\.json\.gz.*byte \d+", self.folder / "rank-0.json.gz")

    def test_gzip_without_its_last_byte(self):
        (self.folder / "rank-0.json.gz").write_bytes(gzip.compress(WHOLE.encode())[:-1])
        self.refused(r"rank-0\.json\.gz.*more compressed data", self.folder / "rank-0.json.gz")

    def test_damaged_gzip(self):
        packed = bytearray(gzip.compress(os.urandom(100000)))
        packed[5000:5100] = bytes(100)
        (self.folder / "rank-0.json.gz").write_bytes(packed)
        self.refused(r"rank-0\.json\.gz", self.folder / "rank-0.json.gz")

    def test_truncated_json(self):
        write(self.folder / "rank-0.json", WHOLE[:-300])
        self.refused(r"rank-0\.json.*byte \d+.*the end of the file", self.folder / "rank-0.json")

    def test_one_broken_file_of_several(self):
        """The message says which, and how the report goes on without it."""
        self.two_ranks()
        for text in WHOLE[:-300], "", "hello":
            write(self.folder / "in/rank-1.json", text)
            self.refused(r"in/rank-1\.json.*Without this file .* the other one is read", self.folder / "in")
        self.refused(r"rank-1\.json.*Without this file", self.folder / "in/rank-0.json", self.folder / "in/rank-1.json")
        (self.folder / "in/rank-1.json").rename(self.folder / "away.json")
        self.succeed("report", self.folder / "in")

    def test_empty_file(self):
        write(self.folder / "rank-0.json", "")
        self.refused(r"rank-0\.json.*an empty file", self.folder / "rank-0.json")

    def test_text_that_is_no_trace(self):
        write(self.folder / "rank-0.json", "hello")
        self.refused(r"rank-0\.json.*expected a Kineto trace", self.folder / "rank-0.json")

    def test_name_that_does_not_exist(self):
        self.refused("nothing.json.*nothing there", self.folder / "nothing.json")

    def test_empty_name(self):
        self.fail_with(2, "an empty name", "report", "")

    def test_directory_without_traces(self):
        write(self.folder / "notes.txt", "hello")
        self.refused("none: record some with", self.folder)

    def test_two_files_of_one_rank_and_window(self):
        for name in ("a", "b"):
            write(self.folder / f"in/{name}.pt.trace.json", trace(step_events(0), 0, 2))
        self.refused("one trace for each rank and window.*rank 0 of the same time again, after .*/in/", self.folder / "in")

    def test_a_run_that_left_its_last_collectives_only(self):
        write(self.folder / "run/flight/from_step_1/rank_00000.json", {"schema": 1})
        self.refused("none: record some with", self.folder / "run")

    def test_a_merged_file_beside_what_it_was_made_of(self):
        folder = self.folder / "run"
        write(folder / "rank-0.json", trace(step_events(0)))
        self.succeed("merge", folder, "-o", folder / "rank-9.json")
        self.assertIn("left out: `sidestream-trace merge` made it", " ".join(self.succeed("report", folder).stdout.split()))
        self.assertEqual(len(self.report(folder)["import"]["files"]), 1)
        self.succeed("report", folder / "rank-9.json")

    def test_events_that_all_make_no_sense(self):
        write(self.folder / "rank-0.json", '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":NaN,"dur":1}]}')
        self.refused("none that can be used .1 left out: ", self.folder / "rank-0.json")

    def test_a_pipe(self):
        os.mkfifo(self.folder / "pipe.json")
        self.refused("pipe.json.*expected a file or a folder.*a pipe", self.folder / "pipe.json")

    def test_a_link_to_itself(self):
        (self.folder / "loop").symlink_to("loop")
        self.refused("loop.*can be read.*symbolic links", self.folder / "loop")

    def test_a_name_that_is_too_long(self):
        self.refused("can be read.*too long", self.folder / ("x" * 300))

    def test_damaged_clock_samples(self):
        for text, found in (("{}", "something else"), ('{"ranks": [{"rank": 0, "samples": [{"local_ns": 1e300, '
                            '"reference_ns": 1, "round_trip_ns": 1}]}]}', "local_ns that is no whole number"),
                            ('{"ranks": [{"rank": 0, "samples": [{"local_ns": 1, "reference_ns": 1, '
                             '"round_trip_ns": -5}]}]}', "a round trip below 0 ns"),
                            ('{"ranks": [{"rank": 0, "samples": [{"local_ns": 9000000000000000000, "reference_ns": 1, '
                             '"round_trip_ns": 1}]}]}', "local_ns that is no time"),
                            ('{"ranks": [{"rank": 0, "samples": [{"local_ns": 1, "reference_ns": -9000000000000000000, '
                             '"round_trip_ns": 1}]}]}', "reference_ns that is no time"),
                            ('{"ranks": [{"rank": 4294967297}]}', "a rank that no job has"),
                            ('{"ranks": [{"rank": 1e300}]}', "rank that is no whole number")):
            with self.subTest(found):
                folder = self.two_ranks()
                write(folder / "clock.json", text)
                self.refused(f"clock.json.*expected clock samples.*{found}", folder)

    def test_clock_samples_that_are_a_folder(self):
        (self.two_ranks() / "clock.json").mkdir()
        self.refused("clock.json", self.folder / "in")

    def test_clock_samples_that_do_not_parse(self):
        folder = self.two_ranks()
        write(folder / "clock.json", '{"ranks": 5')
        self.refused("clock.json.*clock samples", folder)

    def test_a_damaged_record_of_good_traces(self):
        """The message of compare says how to go on, and that way goes."""
        for name, late_us in ("base", 100), ("new", 120):
            write(self.folder / name / "run.json", "{\n")
            write(self.folder / name / "metrics.jsonl", "")
            write(self.folder / name / "config.cfg", "model = gpt2-tiny\n")
            for rank in range(2):
                write(self.folder / name / f"trace/step_1/rank-{rank}.json", trace(step_events(rank, late_us=late_us * rank), rank, 2))
        base, new = self.folder / "base", self.folder / "new"
        self.fail_with(3, f"base/run.json, byte 2: .*To compare by the traces alone, give their folder: {base}/trace$", "compare", base, new)
        self.assertIn("a mean step takes", self.succeed("compare", base / "trace", new / "trace").stdout)


class UsableTest(TraceTest):
    def test_a_recording_without_steps_is_one(self):
        write(self.folder / "rank-0.json", trace([complete("kernel", "gemm", 10, 5, stream=7)]))
        self.assertIn("no ranges named ProfilerStep#N", self.warning_of(self.folder / "rank-0.json"))

    def test_recordings_of_several_jobs(self):
        for name, size in (("a", 1), ("b", 2)):
            write(self.folder / f"in/{name}/rank-0.json", trace(step_events(0), 0, size, baseTimeNanoseconds=BASE_NS + size * 10**9))
        said = self.warning_of(self.folder / "in")
        self.assertIn("the recordings a and b have the same steps of a rank", said)
        self.assertIn("jobs of 1 and of 2 ranks", said)

    def test_missing_rank(self):
        write(self.folder / "in/rank-0.json", trace(step_events(0), 0, 3))
        self.assertIn("no trace of 2 of 3 ranks (1, 2)", self.warning_of(self.folder / "in"))

    def test_a_record_of_the_run_that_is_broken(self):
        """The report goes on without it, and says where it is broken."""
        run_dir = self.folder / "run"
        write(run_dir / "trace/rank-0.pt.trace.json", trace(step_events(0)))
        write(run_dir / "config.cfg", "steps = 3\n")
        write(run_dir / "metrics.jsonl", '{"step": 1, "tokens_per_s": 5}\n{"step": 2')  # still being written
        for text, pattern in (('{"ettr": 0.5', r"run\.json, byte 12: expected the record of a run, found its end, too early"),
                              ('{"ettr": ?}', r"run\.json, byte 9: expected the record of a run, found '\?\}'"),
                              ("{}", r"run\.json: expected the record of a run of this version, found no 'world_size'"),
                              ("[]", r"run\.json: expected the record of a run, found a value of type array")):
            write(run_dir / "run.json", text)
            warning = self.warning_of(run_dir)
            self.assertRegex(warning, pattern)
            self.assertNotIn("metrics.jsonl", warning)
            self.assertNotIn("exception", warning)
        write(run_dir / "config.cfg", "steps = 3\nno setting\n")
        damaged = r"config\.cfg:2: expected `name = value`, found 'no setting': the advice does without"
        write(run_dir / "run.json", '{"ettr": ?}')
        warning = self.warning_of(run_dir)
        self.assertRegex(warning, damaged)  # beside the word on run.json, of which there is one
        self.assertEqual(warning.count("run.json"), 1, warning)
        (run_dir / "run.json").unlink()
        warning = self.warning_of(run_dir)
        self.assertRegex(warning, damaged)
        self.assertRegex(warning, r"run\.json is not there")
        write(run_dir / "config.cfg", "steps = 3\n")
        write(run_dir / "metrics.jsonl", '{"step": 1, "tokens_per_s": 5}\n{"step": 2, "tokens\n{"step": 3}\n')
        self.assertRegex(self.warning_of(run_dir), r"metrics\.jsonl, byte 50: expected one JSON object in line 2, found")
        self.assertEqual(self.report(run_dir)["metrics"]["tokens_per_s"], 5)

    def test_folders_in_place_of_the_records_of_a_run(self):
        run_dir = self.folder / "run"
        write(run_dir / "trace/rank-0.pt.trace.json", trace(step_events(0)))
        for name in ("run.json", "metrics.jsonl"):
            (run_dir / name).mkdir()
        warning = self.warning_of(run_dir)
        for name in ("run.json", "metrics.jsonl"):
            self.assertIn(f"not a regular file: {run_dir / name}: what it says of the run is left out", warning)

    def test_a_link_to_itself_in_place_of_the_record_of_a_run(self):
        run_dir = self.folder / "run"
        write(run_dir / "trace/rank-0.pt.trace.json", trace(step_events(0)))
        write(run_dir / "metrics.jsonl", "")
        (run_dir / "run.json").symlink_to("run.json")
        self.assertIn(f"{run_dir}/run.json: Too many levels of symbolic links: what it says of the run is left out", self.warning_of(run_dir))
        self.fail_with(3, "run.json: Too many levels of symbolic links.*A run directory holds", "compare", run_dir, run_dir)

    def test_a_rank_whose_events_are_all_left_out_has_no_step(self):
        write(self.folder / "in/rank-0.json", trace(step_events(0, steps=3), 0, 2))
        write(self.folder / "in/rank-1.json", trace([complete("kernel", "gemm", 1e300, 2)], 1, 2))
        warning = self.warning_of(self.folder / "in")
        self.assertIn("rank-1.json has no event that a report could use", warning)
        self.assertIn("different numbers of steps, from 0 to 3", warning)
        self.assertNotIn("no ranges named ProfilerStep#N", warning)

    def test_a_record_of_a_job_of_another_size(self):
        run_dir = self.folder / "run"
        write(run_dir / "trace/rank-0.pt.trace.json", trace(step_events(0), 0, 1))
        write(run_dir / "metrics.jsonl", "")
        write(run_dir / "config.cfg", "steps = 3\n")
        write(run_dir / "run.json", json.dumps(RUN_RECORD | {"world_size": 8}))
        self.assertIn('run.json: "world_size" is 8, and rank-0.pt.trace.json is of a job of 1: the advice does without', self.warning_of(run_dir))
        write(run_dir / "run.json", json.dumps(RUN_RECORD))
        self.assertNotIn("world_size", self.warning_of(run_dir))

    def test_a_ledger_whose_figures_cannot_be(self):
        run_dir = self.folder / "run"
        write(run_dir / "trace/rank-0.pt.trace.json", trace(step_events(0)))
        write(run_dir / "metrics.jsonl", "")
        started = {"event": "started", "at": 100, "training_s": 0, "startup_s": 1, "restore_s": 0}
        lines = [started, {"event": "progress", "at": 200, "training_s": -5e8}, {"event": "finished", "at": 220, "training_s": 60, "code": 0}]
        write(run_dir / "ettr.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.assertRegex(self.warning_of(run_dir), r'ettr\.jsonl, byte \d+: expected a line of the ledger .* as "training_s", found -5')
        self.assertEqual(self.report(run_dir)["metrics"]["ettr"], 60 / 121)

    def test_different_numbers_of_steps(self):
        write(self.folder / "in/rank-0.json", trace(step_events(0, steps=3), 0, 2))
        write(self.folder / "in/rank-1.json", trace(step_events(1, steps=2), 1, 2))
        self.assertIn("different numbers of steps, from 2 to 3", self.warning_of(self.folder / "in"))

    def test_a_world_of_billions_of_ranks(self):
        report = self.report(write(self.folder / "rank-0.json", trace(step_events(0), 0, 2_000_000_000)))
        self.assertEqual(report["world_size"], 1)

    def test_ranks_without_a_collective(self):
        for rank in range(2):
            write(self.folder / f"in/rank-{rank}.json", trace([complete("kernel", "gemm", 1, 2)], rank, 2))
        self.assertIn("not one collective", self.warning_of(self.folder / "in"))

    def test_clocks_that_run_backwards_are_said(self):
        """The second step begins before the first one ends, and its kernels before their launches."""
        events = step_events(0, first=3, steps=1) + [
            {**event, "ts": event["ts"] - 500} if event["cat"] != "cuda_runtime" else event
            for event in step_events(0, first=4, steps=1)]
        warning = self.warning_of(write(self.folder / "rank-0.json", trace(events)))
        self.assertIn("1 step that begins before the one before it ends", warning)
        self.assertIn("1 kernel that begins before its launch", warning)

    def test_a_kernel_of_an_hour_in_a_step_of_microseconds_is_said(self):
        events = step_events(0) + [complete("kernel", "endless", 3100, 3.6e9)]
        self.assertIn("1 operation that is longer than all steps from end to end",
                      self.warning_of(write(self.folder / "rank-0.json", trace(events))))

    def test_negative_durations_and_clocks_that_run_backwards(self):
        events = step_events(0) + [complete("kernel", "back", 5000, -1), complete("kernel", "early", -50, 10)]
        report = self.report(write(self.folder / "rank-0.json", trace(list(reversed(events)))))
        self.assertEqual(report["import"]["skipped"], {"negative duration": 1})
        self.assertEqual([step["step"] for step in report["steps"]], [3, 4, 5])
        for step in report["steps"]:
            self.assertEqual(step["window_ns"], step["compute_ns"] + step["exposed_comm_ns"]
                             + step["exposed_memcpy_ns"] + step["idle_ns"])

    def test_times_that_cannot_be_are_counted_and_said(self):
        wrong = [complete("kernel", "bad", *times) for times in (("abc", 5), (1e30, 5), (3100, "x"), (3100, 1e30), (3100, -5))]
        file = write(self.folder / "rank-0.json", trace(step_events(0, steps=1) + wrong))
        said = "rank-0.json: 5 events are left out for times that cannot be; the first is number 10 of the file, 'bad': " \
            "expected \"ts\" in microseconds, found 'abc'"
        report = self.report(file)
        self.assertEqual(report["import"]["skipped"], {"time that is no number": 1, "time out of range": 1, "negative duration": 1,
                                                       "duration that is no number": 1, "duration out of range": 1})
        self.assertIn(said, report["import"]["warnings"])
        self.assertIn(said, " ".join(self.succeed("report", file).stdout.split()))
        write(self.folder / "two/step_1/rank-0.json", file.read_text())
        write(self.folder / "two/step_2/rank-0.json", json.dumps(trace(step_events(0, first=20), baseTimeNanoseconds=BASE_NS + 10**10)))
        self.assertIn("step_1/" + said, self.report(self.folder / "two")["import"]["warnings"])
        merged = self.succeed("merge", file, "-o", self.folder / "m.json")
        self.assertIn(said, merged.stderr)
        self.assertIn("events without 5 whose times cannot be", merged.stdout)
        self.assertNotIn("bad", (self.folder / "m.json").read_text())
        write(file, file.read_text().replace('"traceEvents": [', '"traceEvents": [{"a" 1}, ', 1))
        self.assertIn("events without 5 whose times cannot be and 1 that cannot be read",
                      self.succeed("merge", file, "-o", self.folder / "m.json").stdout)

    def test_huge_single_line_in_bounded_memory(self):
        """One event with a name of 600 MB, between two good ones, on one line."""
        path, block = self.folder / "rank-0.json", b"x" * (1 << 20)
        with open(path, "wb") as file:
            file.write(b'{"traceEvents":[' + json.dumps(complete("kernel", "a", 1, 2)).encode())
            file.write(b',{"ph":"X","cat":"kernel","ts":5,"dur":1,"name":"')
            for _ in range(600):
                file.write(block)
            file.write(b'"},' + json.dumps(complete("kernel", "b", 10, 2)).encode() + b"]}")
        output = self.folder / "report.json"
        with running([PROGRAM, "report", path, "--quiet", "--json", output]) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        report, peak_mb = json.loads(output.read_text()), usage.ru_maxrss / 1024
        self.assertEqual(report["import"]["skipped"], {"event above 16 MB": 1})
        self.assertEqual(report["steps"][0]["compute_ns"], 4000)
        self.assertLess(peak_mb, float(os.environ.get("SIDESTREAM_MEMORY_LIMIT_MB", 100)))

    def test_deep_nesting(self):
        text = WHOLE.replace('"traceEvents": [', '"deep": ' + "[" * 100000 + "]" * 100000
                             + ', "traceEvents": [{"args": ' + "{\"a\":" * 100000 + "1" + "}" * 100000 + "},", 1)
        report = self.report(write(self.folder / "rank-0.json", text))
        self.assertEqual(report["import"]["skipped"], {"event nested too deeply": 1})
        self.assertEqual(len(report["steps"]), 3)

    def test_something_behind_the_end(self):
        report = self.report(write(self.folder / "rank-0.json", WHOLE + WHOLE))
        self.assertEqual(report["import"]["skipped"], {"something behind the end of the trace": 1})
        self.assertEqual(len(report["steps"]), 3)

    def test_inputs_are_left_as_they_are(self):
        folder = self.two_ranks()
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        for path in folder.iterdir():
            path.chmod(0o400)
        self.report(folder)
        self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir()}, before)


class FlagsTest(TraceTest):
    def test_wrong_words(self):
        folder = self.two_ranks()
        for pattern, words in [("unknown command 'reprot'.*report", ["reprot", folder]), ("no trace given", ["report"]),
                               ("no table 'kernel'.*kernels", ["report", folder, "--tables", "kernel"]),
                               ("--output is missing", ["merge", folder]),
                               ("a range that rises", ["merge", folder, "-o", "x", "--steps", "5:3"]),
                               ("--ranks: nothing.*ranks there: 0 to 1", ["merge", folder, "-o", "x", "--ranks", "7"]),
                               ("--steps: nothing.*steps there: [0-9]+ to [0-9]+", ["merge", folder, "-o", "x", "--steps", "99:99"]),
                               ("/dev/stdout", ["report", folder, "--json", "-"]),
                               ("--unknown", ["report", folder, "--unknown"])]:
            with self.subTest(words=words):
                self.fail_with(2, pattern, *words)

    def test_no_command_and_help(self):
        self.assertEqual(run().returncode, 2)
        for words in (["--help"], ["help", "report"], ["merge", "--help"], ["--version"]):
            self.assertEqual(run(*words).returncode, 0)

    def test_standard_output_by_its_name_stays_what_it_is(self):
        folder, before = self.two_ranks(), os.readlink("/dev/stdout")
        for words in (["report", folder, "--quiet", "--json", "/dev/stdout"], ["merge", folder, "-o", "/dev/stdout"]):
            out = self.folder / "out.json"
            with open(out, "w") as file:
                file.write("\n")  # what stands there stays, and the rest comes behind it
                file.flush()
                done = subprocess.run([PROGRAM, *map(str, words)], stdout=file, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.readlink("/dev/stdout"), before)
            self.assertEqual(out.read_text()[0], "\n")
            json.loads(out.read_text())

    def test_output_that_cannot_be_written(self):
        folder = self.two_ranks()
        missing = self.folder / "no/such/folder/out.json"
        self.fail_with(2, "no/such/folder", "merge", folder, "-o", missing)
        self.assertEqual(run("report", folder, "--quiet", "--json", missing).returncode, 2)
        self.assertFalse(missing.parent.exists())


if __name__ == "__main__":
    unittest.main()
