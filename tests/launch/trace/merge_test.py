"""`sidestream-trace merge`: one file of all ranks that loses nothing, mixes nothing up and says whose clock it shows."""

import collections
import gzip
import json
import signal
import subprocess
import time
import unittest

from support import BASE_NS, PROGRAM, ROOT, TraceTest, complete, run, step_events, trace, write  # and puts the next on the path
from running import running, stop

GENERATED = ROOT / "tests/data/traces/generated_3ranks"
# Two steps with a kernel each; in the second a graph is launched twice, whose kernels were not recorded.
GRAPHS = """
CREATE TABLE StringIds(id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'gemm');
CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT);
INSERT INTO NVTX_EVENTS VALUES (1000, 3000, 59, 'ProfilerStep#1', 16777217), (3000, 9000, 59, 'ProfilerStep#2', 16777217);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, shortName INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1200, 1700, 0, 13, 1, 16777216, 1), (3100, 3600, 0, 13, 2, 16777216, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, graphId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (4000, 5500, 0, 13, 3, 16777216, 1), (6000, 7500, 0, 13, 4, 16777216, 1);
"""


class MergeTest(TraceTest):
    def merge(self, *words, name="merged.json.gz"):
        file = self.folder / name
        self.succeed("merge", *words, "-o", file)
        return json.loads(gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_text())

    @staticmethod
    def of_phase(merged, *phases):
        return [event for event in merged["traceEvents"] if event["ph"] in phases]

    def test_every_event_of_every_rank_is_there(self):
        merged = self.merge(GENERATED)
        found = collections.Counter((event["pid"], event["name"], event["ph"])
                                    for event in self.of_phase(merged, "X", "s", "f"))
        expected = collections.Counter()
        for rank in range(3):
            with gzip.open(GENERATED / f"rank-{rank}.json.gz") as file:
                for event in json.load(file)["traceEvents"]:
                    expected[rank, event["name"], event["ph"]] += 1
        self.assertEqual(found, expected)

    def test_launches_of_graphs_are_no_kernels_after_a_merge_either(self):
        database = self.export(GRAPHS)
        before = self.report(database)
        self.assertEqual([(step["window_ns"], step["compute_ns"]) for step in before["steps"]], [(2000, 500), (6000, 500)])
        self.succeed("merge", database, "-o", self.folder / "merged.json")
        after = self.report(self.folder / "merged.json")
        for key in ("window_ns", "compute_ns", "idle_ns"):
            self.assertEqual([step[key] for step in after["steps"]], [step[key] for step in before["steps"]], key)
        self.assertTrue(any("CUDA graphs" in one for one in after["import"]["warnings"]), after["import"]["warnings"])

    def test_durations_and_arguments_stay_as_they_are(self):
        folder = self.two_ranks()
        kernels = [event for event in self.of_phase(self.merge(folder), "X") if event["name"] == "gemm"]
        self.assertEqual(len(kernels), 6)
        for event in kernels:
            self.assertEqual(event["dur"], 400.125)
            self.assertEqual(event["args"]["stream"], 7)

    def test_arrows_connect_events_of_one_rank_only(self):
        merged = self.merge(GENERATED)
        arrows = collections.defaultdict(list)
        for event in self.of_phase(merged, "s", "f"):
            arrows[event["cat"], event["id"]].append(event)
        self.assertGreater(len(arrows), 100)
        for (_, number), ends in arrows.items():
            self.assertLess(number, 1 << 53)
            self.assertEqual(sorted(end["ph"] for end in ends), ["f", "s"], number)
            self.assertEqual(len({end["pid"] for end in ends}), 1)

    def test_an_arrow_starts_inside_an_event_and_ends_at_one(self):
        merged = self.merge(self.two_ranks())
        for arrow in self.of_phase(merged, "s", "f"):
            self.assertTrue(any(event["pid"] == arrow["pid"] and event["tid"] == arrow["tid"]
                                and event["ts"] <= arrow["ts"] <= event["ts"] + event["dur"]
                                for event in self.of_phase(merged, "X")), arrow)

    def test_processes_are_named_and_sorted_and_no_thread_is_shared(self):
        merged = self.merge(GENERATED)
        metadata = {(event["name"], event["pid"], event["tid"]): event["args"] for event in self.of_phase(merged, "M")}
        for rank in range(3):
            self.assertEqual(metadata["process_name", rank, 0], {"name": f"rank {rank}"})
            self.assertEqual(metadata["process_sort_index", rank, 0], {"sort_index": rank})
        owners = collections.defaultdict(set)
        for event in self.of_phase(merged, "X"):
            owners[event["tid"]].add(event["pid"])
            self.assertIn(("thread_name", event["pid"], event["tid"]), metadata)
        self.assertTrue(all(len(ranks) == 1 for ranks in owners.values()))

    def test_clocks_are_aligned_and_said(self):
        for rank in range(2):  # rank 1's clock is 40 ms ahead
            events = step_events(rank)
            for event in events:
                event["ts"] += 40_000 * rank
            write(self.folder / f"in/rank-{rank}.json", trace(events, rank, 2))
        done = run("merge", self.folder / "in", "-o", self.folder / "m.json")
        merged = json.loads((self.folder / "m.json").read_text())
        self.assertIn("aligned on matched collectives alone", done.stderr)
        self.assertIn("clocks: collectives", done.stdout)
        self.assertEqual(merged["clock"]["method"], "collectives")
        self.assertAlmostEqual(merged["clock"]["offset_us"]["1"], -40_000)
        self.assertEqual(merged["clock"]["residual_us_p95"], 0)
        starts = {(event["pid"], event["name"]): event["ts"] for event in self.of_phase(merged, "X")}
        self.assertAlmostEqual(starts[0, "ProfilerStep#5"], starts[1, "ProfilerStep#5"])

    def test_times_start_at_zero_and_the_base_is_kept(self):
        merged = self.merge(self.two_ranks())
        self.assertEqual(min(event["ts"] for event in self.of_phase(merged, "X")), 0)
        self.assertEqual(merged["baseTimeNanoseconds"], BASE_NS + 3_000_000)

    def test_only_some_ranks(self):
        merged = self.merge(GENERATED, "--ranks", "0,2")
        self.assertEqual({event["pid"] for event in merged["traceEvents"]}, {0, 2})
        self.assertEqual({event["pid"] for event in self.merge(GENERATED, "--ranks", "1:2")["traceEvents"]}, {1, 2})

    def test_only_some_steps(self):
        merged = self.merge(self.two_ranks(first=3, steps=5, length_us=10_000), "--steps", "4:5")
        steps = {event["name"] for event in self.of_phase(merged, "X") if event["name"].startswith("ProfilerStep#")}
        self.assertLessEqual({"ProfilerStep#4", "ProfilerStep#5"}, steps)
        self.assertNotIn("ProfilerStep#7", steps)
        kernels = [event for event in self.of_phase(merged, "X") if event["name"] == "gemm"]
        self.assertEqual(len(kernels), 2 * 2)

    def test_windows_of_a_rank_do_not_share_arrows(self):
        for window, at in ("step_3", 0), ("step_9", 1000):
            events = [complete("cuda_runtime", "cudaLaunchKernel", at, 2, correlation=1), complete("kernel", "gemm", at + 5, 9, correlation=1),
                      {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": at},
                      {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": at + 5, "bp": "e"}]
            write(self.folder / f"in/{window}/rank-0.pt.trace.json", trace(events))
        arrows = collections.Counter(event["id"] for event in self.of_phase(self.merge(self.folder / "in"), "s", "f"))
        self.assertEqual(sorted(arrows.values()), [2, 2])

    def test_a_call_that_launched_several_kernels_has_an_arrow_to_each(self):
        ends = [{"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 7, "pid": 1, "tid": 2, "ts": at, "bp": "e"} for at in (20, 40, 60)]
        events = [complete("cuda_runtime", "cudaGraphLaunch", 10, 2, correlation=7), {**ends[0], "ph": "s", "tid": 1, "ts": 10}, *ends,
                  *(complete("kernel", f"k{at}", at, 9, correlation=7) for at in (20, 40, 60))]
        write(self.folder / "in/rank-0.pt.trace.json", trace(events))
        phases = [event["ph"] for event in self.of_phase(self.merge(self.folder / "in"), "s", "f")]
        self.assertEqual(sorted(phases), ["f", "f", "f", "s"])

    def test_a_cut_leaves_no_half_of_an_arrow(self):
        merged = self.merge(GENERATED, "--steps", "3:3")
        arrows = collections.Counter((event["cat"], event["id"]) for event in self.of_phase(merged, "s", "f"))
        self.assertTrue(arrows)
        self.assertEqual(set(arrows.values()), {2})

    def test_halves_of_arrows_that_the_profiler_left_are_not_taken_over(self):
        events = step_events(0)
        events.append({"ph": "s", "id": 999, "pid": 1, "tid": 1, "ts": 3100, "cat": "ac2g", "name": "ac2g"})
        write(self.folder / "rank-0.json", trace(events))
        self.succeed("merge", self.folder / "rank-0.json", "-o", self.folder / "m.json")
        arrows = [event for event in json.loads((self.folder / "m.json").read_text())["traceEvents"] if event["ph"] in "sf"]
        self.assertEqual(len(arrows), 6)

    def test_instants_of_no_process_belong_to_the_rank(self):
        end = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9}
        counter = {"ph": "C", "name": "power", "pid": 3, "ts": 5, "args": {"W": 300}}
        merged = self.merge(write(self.folder / "rank-0.json", trace([complete("kernel", "gemm", 1, 2), end, counter])), name="m.json")
        self.assertEqual({event["pid"] for event in merged["traceEvents"]}, {0})
        names = {event["args"]["name"] for event in self.of_phase(merged, "M") if event["name"] == "thread_name"}
        self.assertNotIn("thread ", names)

    def test_unknown_events_and_fields_pass_through(self):
        strange = {"ph": "C", "name": "GPU power", "pid": "gpu", "tid": 0, "ts": 5, "args": {"W": 300, "text": "a\"b\\ü"}}
        events = [complete("kernel", "gemm", 1, 2, **{"a field of tomorrow": [1, {"x": None}]}), strange]
        merged = self.merge(write(self.folder / "rank-0.json", trace(events)), name="plain.json")
        counter, = self.of_phase(merged, "C")
        self.assertEqual(counter["args"], strange["args"])
        self.assertEqual(self.of_phase(merged, "X")[0]["args"], events[0]["args"])

    def test_a_merged_trace_is_a_trace(self):
        """Reports of one rank before and after are the same."""
        merged = self.folder / "rank-0.json.gz"
        self.succeed("merge", GENERATED, "--ranks", "0", "-o", merged)
        before = [step for step in self.report(GENERATED)["steps"] if step["rank"] == 0]
        after = self.report(merged)["steps"]
        self.assertEqual(before, after)

    def test_an_interrupted_merge_leaves_nothing(self):
        write(self.folder / "in/rank-0.json", trace(step_events(0)))
        text = (self.folder / "in/rank-0.json").read_text()
        write(self.folder / "in/rank-0.json", text[:-20])
        self.fail_with(3, "rank-0.json", "merge", self.folder / "in", "-o", self.folder / "m.json")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["in"])

    def test_a_stream_that_is_closed_or_full_takes_nothing_from_the_file(self):
        """Its clocks are worth a warning: standard error may be gone, or takes nothing."""
        folder, file = self.two_ranks(), self.folder / "m.json"
        expected = self.merge(folder, name="whole.json")
        for without in "0>&-", "1>&-", "2>&-", "0>&- 1>&- 2>&-", "2>/dev/full":
            done = subprocess.run(["sh", "-c", f'exec "$@" {without}', "sh", PROGRAM, "merge", folder, "-o", file], text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, f"{without}: {done}")
            self.assertEqual(json.loads(file.read_text()), expected, without)
            file.unlink()

    def partial_files(self):
        return list(self.folder.glob("m.json.gz.*.partial"))

    def stopped_while_it_writes(self, file):
        """A merge that is held where a part of its output is there. On a busy machine the first ones may come to their end before."""
        for _ in range(5):
            process = self.enterContext(running([PROGRAM, "merge", self.folder / "in", "-o", file]))
            while not self.partial_files() and process.poll() is None:
                time.sleep(0.001)
            if stop(process) and self.partial_files():
                return process
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=60)
            file.unlink()
        self.fail("every merge ended before it could be asked to stop")

    def test_what_asks_to_stop_leaves_nothing_behind(self):
        events = [complete("kernel", "gemm", at, 0.5, stream=7) for at in range(300_000)]
        file = self.folder / "m.json.gz"
        write(self.folder / "in/rank-0.json", trace(events))
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = self.stopped_while_it_writes(file)
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            said, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertIn("merge: stopped as asked; nothing was left behind", said)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["in"])

    def test_report_of_merged_ranks_is_refused(self):
        """Their threads and steps cannot be told apart: figures of it would be wrong."""
        self.succeed("merge", self.two_ranks(), "-o", self.folder / "m.json.gz")
        self.fail_with(3, "expected the trace of one rank, found 2 ranks that .* put into one file", "report", self.folder / "m.json.gz")
        self.succeed("merge", self.folder / "in", "-o", self.folder / "one.json.gz", "--ranks", "1")
        self.succeed("report", self.folder / "one.json.gz")


if __name__ == "__main__":
    unittest.main()
