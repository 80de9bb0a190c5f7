"""What `sidestream-trace report` says: against counting (tests/reference/trace_truth.py), PyTorch's FLOP counter, and
itself in its three forms (text, JSON, CSV)."""

import json
import os
import re
import statistics
import sys
import unittest

from support import PROGRAM, ROOT, TraceTest, complete, read_csv, run, step_events, trace, write
from terminals import said_to_terminal

sys.path.insert(0, str(ROOT / "tests/reference"))
import trace_truth  # noqa: E402

DATA = ROOT / "tests/data/traces"
SHARED = ROOT.parent / "shared/traces"
FOLDERS = sorted({path.parent for place in (DATA, SHARED) if place.exists()
                  for pattern in ("*/rank-0.json.gz", "*/rank_00000.sqlite") for path in place.glob(pattern)})

COLUMNS_OF_A_TABLE = re.compile(r"\S {2,}\S")

# Key -> type of its value; None: may be null. What scripts rely on: keys are added, never taken away or renamed.
SCHEMA = {
    "schema": int, "world_size": int,
    "clock": {"method": str, "offset_us": [float], "drift_ppm": [float], "residual_us_p50": None, "residual_us_p95": None,
              "offset_uncertainty_us": list, "drift_uncertainty_ppm": list},
    "steps": [{"rank": int, "step": None, "start_ns": int, "gpu_counters": None, "tags": list, "window_ns": int, "compute_ns": int,
               "overlapped_comm_ns": int, "exposed_comm_ns": int, "exposed_memcpy_ns": int, "idle_ns": int,
               "idle_by_cause_ns": dict.fromkeys(["data", "host", "sync", "comm", "lock", "other"], int)}],
    "top_ops": [{"name": str, "calls": int, "total_ns": int, "share": float, "step_share": None, "flops": None, "bytes": None,
                 "flops_per_s": None, "bytes_per_s": None, "bytes_at_least": bool, "roofline_bound": None, "cause": None, "kind": str}],
    "collectives": [{"name": str, "bucket": None, "bytes": None, "count": int, "transfer_ns": None, "wait_ns": None,
                     "exposed_ns": int, "overlapped_ns": int, "alg_gb_per_s": None, "bus_gb_per_s": None,
                     "slowest_rank": None, "total_ns": int, "blocking_ns": int}],
    "stragglers": [{"rank": int, "phase": None, "cost_ns_per_step": int, "cost_low_ns": None, "cost_high_ns": None,
                    "steps": int, "steps_last": int}],
    "steps_left_out": int,
    "rank_means": [{"rank": int, "steps": int, **dict.fromkeys(["window_ns", "compute_ns", "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns"], int),
                    "idle_by_cause_ns": dict.fromkeys(["data", "host", "sync", "comm", "lock", "other"], int)}],
    "usually_last": None, "rotating_wait_ns_per_step": None,
    "metrics": dict.fromkeys(["step_ms_p50", "tokens_per_s", "mfu", "mfu_palm", "tensor_core_share", "tensor_core_source",
                              "ettr", "gpu_utilisation", "sm_efficiency", "occupancy", "mfu_source", "profiler_was_off", "profiler_cost", "profiler_cost_below", "unprofiled_data_wait", "steps_without_profiler", "gpu_counters",
                              "joules_per_token"]),
    "verdict": None, "verdict_sure": None, "verdict_text": None, "hang": None, "outliers": list, "urgent": [str], "advice": list, "not_measured": [{"rule": str, "needs": str}],
    "import": {"files": [str], "events": int, "skipped": dict, "warnings": list},
    "overview": {"steps": int, "tagged_steps": int, "left_out": dict, "operation_steps": int, "profiled_only": bool, "mean_step": [{"part": str, "time_ns": int}]},
    "overlap_tax": dict.fromkeys(["hidden_ns", "tax_ns", "net_gain_ns", "judged_ns", "beside_ns"], int),
    "nothing_found": list, "ceilings": None, "counter_commands": list,
    "heat_map": {"steps": list, "ranks": [int], "own_ns": [list], "over_median": [list]},
    "memory_curves": [{"rank": int, "window": str, "device": int, "points": [list]}],
    "timeline": [{"rank": int, "step": None, "window_ns": int, "lanes": [{"name": str, "intervals_ns": list}]}],
    "tables": dict,
}


class ReportTest(TraceTest):
    def conforms(self, value, schema, place="report"):
        if schema is None:
            return
        if isinstance(schema, dict):
            self.assertIsInstance(value, dict, place)
            self.assertLessEqual(set(schema), set(value), place)
            for key, inner in schema.items():
                self.conforms(value[key], inner, f"{place}.{key}")
        elif isinstance(schema, list):
            self.assertIsInstance(value, list, place)
            for number, one in enumerate(value):
                self.conforms(one, schema[0], f"{place}[{number}]")
        else:
            self.assertIsInstance(value, (int, float) if schema is float else schema, place)

    def test_there_are_traces_to_check(self):
        self.assertGreaterEqual(len(FOLDERS), 3)

    def test_keys_and_types(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder.name):
                report = self.report(folder)
                self.conforms(report, SCHEMA)
                self.assertEqual(report["schema"], 1)

    def test_the_readme_names_every_key(self):
        named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", (ROOT / "profiling/report/README.md").read_text()))))
        for folder in FOLDERS:
            self.assertEqual(set(self.report(folder)) - named, set(), folder.name)

    def test_every_figure_of_the_page_is_in_report_json(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder.name):
                report, page = self.report(folder), self.folder / "page.html"
                self.succeed("report", folder, "--quiet", "--html", page)
                shown, = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S).group(1))["runs"]
                self.assertEqual(shown["memory_curves"], report["memory_curves"])
                for key, value in shown["report"].items():
                    self.assertEqual(value, report[key], key)
                for table in shown["tables"]:
                    self.assertEqual(table["rows"], report["tables"][table["name"]]["rows"], table["name"])
                own = {(one["rank"], one["step"]): one["window_ns"] - one["exposed_comm_ns"] - one["idle_by_cause_ns"]["comm"]
                       for one in report["steps"]}
                heat = report["heat_map"]
                self.assertEqual(heat["own_ns"], [[own.get((rank, step)) for step in heat["steps"]] for rank in heat["ranks"]])
                for times, shares in zip(zip(*heat["own_ns"]), zip(*heat["over_median"])):
                    middle = statistics.median(time for time in times if time is not None)
                    for time, share in zip(times, shares):
                        self.assertEqual(share, None if time is None or middle == 0 else time / middle - 1)

    def test_budget_of_every_step_to_the_nanosecond(self):
        for folder in FOLDERS:
            truth = trace_truth.truth_of(folder)
            report = self.report(folder)
            for rank, expected in truth["ranks"].items():
                windows = expected["steps"] or ([expected["gpu_window"]] if expected["gpu_window"] else [])
                found = [step for step in report["steps"] if step["rank"] == int(rank)]
                self.assertEqual(len(found), len(windows), folder)
                for step, window in zip(found, windows):
                    for key in ("window", "compute", "overlapped_comm", "exposed_comm", "exposed_memcpy", "idle"):
                        self.assertEqual(step[key + "_ns"], window[key], f"{folder.name} {rank} {key}")
                    self.assertEqual(sum(step["idle_by_cause_ns"].values()), step["idle_ns"])

    def test_starts_of_steps_on_the_common_clock(self):
        steps = self.report(self.two_ranks())["steps"]
        self.assertEqual([(step["rank"], step["step"], step["start_ns"]) for step in steps],
                         [(rank, step, (step - 3) * 1_000_000) for rank in (0, 1) for step in (3, 4, 5)])

    def test_flops_are_those_that_pytorch_counts(self):
        self.succeed("report", DATA / "torch_cpu", "--quiet", "--csv", self.folder)
        counted = {}
        for row in read_csv(self.folder / "operators.csv"):
            if row["flops"]:
                counted[row["operator"]] = counted.get(row["operator"], 0) + float(row["flops"])
        self.assertEqual(counted, json.loads((DATA / "torch_cpu/flops.json").read_text()))

    def test_a_folder_for_csv_that_cannot_be_made(self):
        self.fail_with(2, "cannot create '?/proc/nowhere", "report", DATA / "torch_cpu", "--quiet", "--csv", "/proc/nowhere/x")

    def test_two_runs_are_not_mixed(self):
        folders = [self.folder / f"run{number}" for number in range(2)]
        for number, flops in enumerate((100.0, 200.0)):
            own = {"flops_per_token": flops, "tokens_per_step": 8.0}
            write(folders[number] / "trace/step_3/rank-0.pt.trace.json", trace(step_events(0, first=3 + 10 * number), sidestream=own))
        self.assertIn("warning: these traces are of 2 models", self.succeed("report", *folders).stdout)
        for folder in folders:
            write(folder / "run.json", {})
        self.fail_with(2, "2 run directories.*sidestream-trace compare.*run0, .*run1", "report", *folders)
        self.fail_with(2, "2 run directories", "merge", *folders, "-o", self.folder / "merged.json")
        self.fail_with(2, "2 run directories.*run0, .*run1", "report", self.folder)
        self.assertNotIn("run directories", self.succeed("report", folders[0]).stdout)

    def test_csv_reads_back_and_agrees_with_json(self):
        for folder in FOLDERS:
            report, tables = self.report(folder), self.folder / folder.name
            self.succeed("report", folder, "--quiet", "--csv", tables)
            for name, table in report["tables"].items():
                rows = read_csv(tables / f"{name}.csv")
                if name == "events":
                    self.assertLessEqual(table["rows_in_all"], len(rows))
                    continue
                self.assertEqual(len(rows), table["rows_in_all"], name)
                for row, values in zip(rows, table["rows"]):
                    for key, value in zip(table["columns"], values):
                        if isinstance(value, (int, float)):
                            self.assertEqual(type(value)(row[key]), value)
                        else:
                            self.assertEqual(row[key], value or "")
            self.assertEqual(set(report["tables"]) | {"events"}, {path.stem for path in tables.iterdir()})

    def test_host_time_of_operators_adds_up(self):
        """Own times of all operators are together what the threads were inside operators."""
        self.succeed("report", DATA / "torch_cpu", "--quiet", "--csv", self.folder)
        tree = read_csv(self.folder / "operator_tree.csv")
        roots = sum(int(row["host_total_ns"]) for row in tree if row["depth"] == "1")
        self.assertEqual(sum(int(row["host_self_ns"]) for row in tree), roots)

    def test_memory_of_a_real_trace(self):
        self.succeed("report", DATA / "torch_cpu", "--quiet", "--csv", self.folder)
        events = [event for event in trace_truth.read(DATA / "torch_cpu/rank-0.json.gz")["traceEvents"]
                  if event["name"] == "[memory]"]
        peak, = read_csv(self.folder / "memory_peaks.csv")
        self.assertEqual(int(peak["peak_allocated_bytes"]), max(event["args"]["Total Allocated"] for event in events))
        self.assertEqual(int(peak["allocations"]) + int(peak["releases"]), len(events))
        categories = {row["category"]: int(row["at_peak_bytes"]) for row in read_csv(self.folder / "memory_categories.csv")}
        self.assertEqual(sum(categories.values()), int(peak["peak_allocated_bytes"]))
        self.assertGreater(categories["forward"], 0)

    def test_text_fits_a_terminal_and_carries_no_colour_in_a_pipe(self):
        for folder in FOLDERS:
            text = self.succeed("report", folder).stdout
            self.assertNotIn("\033", text)
            for line in text.splitlines():
                self.fits(line, 100)

    def test_text_is_as_wide_as_the_terminal(self):
        for words in (["report", DATA / "trainer_cpu_2ranks"], ["roofline", DATA / "trainer_cpu_2ranks"]):
            narrowest, narrow, plain, wide = (self.on_a_terminal(columns, *words) for columns in (40, 72, 100, 300))
            self.assertEqual(wide, plain, "longer lines are hard to read")
            self.assertLess(len(plain), len(narrow))
            for lines, columns in (narrowest, 40), (narrow, 72):
                sentences = [line for line in lines if line and not COLUMNS_OF_A_TABLE.search(line)]
                self.assertGreater(len(sentences), 5)
                for line in sentences:
                    self.fits(line, columns)

    def fits(self, line, columns):
        """A word that is longer stays whole, on a line of its own."""
        if len(line.split()) > 1:
            self.assertLessEqual(len(line), columns, line)

    def on_a_terminal(self, columns, *words):
        """Lines of the program on a terminal so wide."""
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        code, text = said_to_terminal([PROGRAM, *words], environment, columns)
        self.assertEqual(code, 0)
        return text.splitlines()

    def test_tables_on_the_terminal(self):
        text = self.succeed("report", DATA / "torch_cpu", "--tables", "operators,memory_peaks", "--rows", "3").stdout
        self.assertIn("operators (the first 3 of", text)
        self.assertIn("memory_peaks (columns without an entry left out: 1)\n", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for line in text.split("memory_peaks")[0].splitlines()[2:]:
            self.assertNotRegex(line, r"\d\.\.\.\w*/s", "a number is cut")
        self.assertNotIn("Verdict", text)
        every = self.succeed("report", DATA / "generated_3ranks", "--tables", "all", "--rows", "2").stdout
        for name in self.report(DATA / "generated_3ranks")["tables"]:
            if name != "events":
                self.assertRegex(every, rf"(?m)^{name}\b")

    def test_transfer_waiting_and_bandwidth(self):
        folder = self.two_ranks()
        report = self.report(folder)
        row, = report["collectives"]
        self.assertEqual((row["name"], row["bytes"], row["count"]), ("allreduce", 4000, 3))
        self.assertEqual(row["transfer_ns"], 3 * 100_000)
        self.assertEqual(row["wait_ns"], 3 * 50_000)  # of one rank: the first waits 100 us, the other does not
        self.assertAlmostEqual(row["alg_gb_per_s"], 4000 / 100e3)
        self.assertAlmostEqual(row["bus_gb_per_s"], 4000 / 100e3)  # 2 (n - 1) / n is 1 for two ranks
        self.assertEqual(row["slowest_rank"], 1)

    def test_run_directory_gives_mfu(self):
        folder = self.folder / "run"
        write(folder / "metrics.jsonl", '{"step":1,"tokens_per_s":100,"mfu":0.25}\n{"step":2,"tokens_p')
        write(folder / "run.json", '{"ettr": 0.9}')
        write(folder / "trace/step_00000003/HOST_00000.3.pt.trace.json", trace(step_events(0)))
        metrics = self.report(folder)["metrics"]
        self.assertEqual((metrics["mfu"], metrics["mfu_source"], metrics["ettr"]), (0.25, "metrics.jsonl", 0.9))

    def test_ledger_of_a_run_that_was_killed(self):
        """run.json has the account only of a run that came to its own end."""
        folder = self.folder / "run"
        write(folder / "run.json", '{"ettr": null, "exit_code": null}')
        write(folder / "trace/step_00000003/HOST_00000.3.pt.trace.json", trace(step_events(0)))
        lines = [{"event": "launched", "at": 100, "attempt": 1}, {"event": "started", "at": 107, "training_s": 0, "startup_s": 5, "restore_s": 0},
                 {"event": "progress", "at": 160, "training_s": 50, "stall_s": 1, "evaluation_s": 0}, {"event": "ended", "at": 162, "attempt": 1, "code": 137}]
        write(folder / "ettr.jsonl", "".join(json.dumps(line) + "\n" for line in lines) + '{"event": "laun')
        metrics = self.report(folder)["metrics"]
        self.assertEqual(metrics["ettr"], 50 / 62)
        account = {"wall_s": 62, "productive_s": 50, "replayed_s": 0, "startup_s": 7, "restore_s": 0, "checkpoint_stall_s": 1, "evaluation_s": 0,
                   "detection_s": 2, "idle_s": 0, "other_s": 2}
        self.assertEqual(metrics["ettr_account"], account)
        self.assertIn("Effective training time 80.6 % of 62.0 s", " ".join(self.succeed("report", folder).stdout.split()))

    def test_what_the_run_said_of_itself_stands_beside_the_verdict_of_the_traces(self):
        folder = self.folder / "run"
        write(folder / "run.json", {"verdict": {"word": "compute", "steps": 240, "compute": 0.84, "comm": 0.15, "io": 0.01, "cpu": 0}})
        write(folder / "trace/step_00000003/HOST_00000.3.pt.trace.json", trace(step_events(0)))
        self.assertEqual(self.report(folder)["run_verdict"], {"steps": 240, "compute": 0.84, "comm": 0.15, "io": 0.01, "cpu": 0.0})
        text = " ".join(self.succeed("report", folder).stdout.split())
        self.assertIn("at its end the run said of all its 240 steps: compute 84.0 %, communication 15.0 %, input 1.0 %, host 0.0 %", text)

    def test_a_verdict_of_two_steps_is_not_sure_anywhere(self):
        folder, page = self.two_ranks(steps=2), self.folder / "r.html"
        said = "computing: not sure (too few steps to tell how far it leads other work of the host)"
        report = self.report(folder)
        self.assertEqual((report["verdict_sure"], report["verdict_text"]), (False, said))
        self.assertIn(f"bound by {said}", " ".join(self.succeed("report", folder, "--html", page).stdout.split()))
        self.assertIn(f'"verdict_text":"{said}"', page.read_text().replace('": "', '":"'))

    def test_settings_are_known_where_the_rest_of_a_run_is_damaged(self):
        folder = self.folder / "run"
        write(folder / "trace/step_00000003/HOST_00000.3.pt.trace.json", trace(step_events(0)))
        write(folder / "config.cfg", "flush-denormals = on\n")
        for name, content in (("run.json", "{"), ("metrics.jsonl", "{}\n")):
            with self.subTest(name):
                write(folder / name, content)
                needs = {one["rule"]: one["needs"] for one in self.report(folder)["not_measured"]}
                self.assertNotIn("denormals", needs)
                self.assertIn("numa", needs)

    def test_files_that_are_left_out_are_named(self):
        write(self.folder / "in/a.pt.trace.json", trace(step_events(0)))
        write(self.folder / "in/rank-1.json", trace(step_events(1), 1, 2))
        for done in (self.succeed("report", self.folder / "in"),
                     self.succeed("merge", self.folder / "in", "-o", self.folder / "merged.json")):
            self.assertIn("rank-1.json. Name files one by one", " ".join((done.stdout + done.stderr).split()))

    def test_rows_are_of_tables(self):
        trace_file = write(self.folder / "rank-0.json", trace(step_events(0)))
        self.fail_with(2, "--rows is of the tables that --tables prints", "report", trace_file, "--rows", "5")

    def test_gate_of_mfu(self):
        folder = self.folder / "run"
        write(folder / "metrics.jsonl", '{"step":1,"tokens_per_s":100,"mfu":0.25}\n')
        write(folder / "trace/step_00000003/HOST_00000.3.pt.trace.json", trace(step_events(0)))
        self.assertEqual(self.succeed("report", folder, "--quiet", "--require-mfu", "25").stderr, "")
        self.fail_with(11, "MFU is 25 %, --require-mfu asks for 25.5 %", "report", folder, "--quiet", "--require-mfu", "25.5")
        write(folder / "metrics.jsonl", '{"step":1,"mfu":0.25}\n{"step":2,"mfu":0.5}\n{"step":3,"mfu":0.75}\n')
        self.succeed("report", folder, "--quiet", "--require-mfu", "2:3:60")
        self.fail_with(11, "MFU is 25 %", "report", folder, "--quiet", "--require-mfu", "1:30")
        self.fail_with(12, "no MFU of a step from 8 to 9: it has them from step 1 to 3", "report", folder, "--quiet", "--require-mfu", "8:9:30")
        self.fail_with(2, "such as 40 or 10:20:40", "report", folder, "--quiet", "--require-mfu", "1:x")
        write(folder / "metrics.jsonl", '{"step":1,"mfu":15.4}\n')
        self.fail_with(12, "an MFU of 1540 % cannot be: the ceilings are too low", "report", folder, "--quiet", "--require-mfu", "40")
        self.assertIn("an MFU of 1540 % (metrics.jsonl) cannot be", " ".join(self.succeed("report", folder).stdout.split()))
        write(folder / "metrics.jsonl", '{"step":1,"mfu":0.25}\n{"step":2,"mfu":0.5}\n{"step":3,"mfu":0.75}\n')
        unknown = write(self.folder / "rank-0.json", trace(step_events(0)))
        self.fail_with(12, "MFU is not known", "report", unknown, "--quiet", "--require-mfu", "1")
        below = run("report", folder, "--require-mfu", "90")
        self.assertEqual(below.returncode, 11)
        self.assertIn("MFU 50.0 %", below.stdout)

    def test_windows_of_a_rank_are_one_rank(self):
        """Figures of a rank are over all its windows: six steps of two ranks, twice three."""
        for first in (3, 8):
            for rank in range(2):
                write(self.folder / f"in/trace/step_{first + 2:08}/node0_{rank:05}.{first + 2}.pt.trace.json",
                      trace(step_events(rank, first=first, late_us=100 * rank), rank, 2))
        report = self.report(self.folder / "in")
        row, = report["collectives"]
        self.assertEqual((row["count"], row["transfer_ns"], row["wait_ns"]), (6, 6 * 100_000, 6 * 50_000))
        self.assertEqual(row["total_ns"], 6 * 150_000)  # 200 us of the one rank, 100 us of the other
        text = self.succeed("report", self.folder / "in").stdout
        ranks = [line.split() for line in text.split("Ranks (of a step)")[1].split("\n\n")[0].splitlines()[2:]]
        self.assertEqual([(words[0], words[1]) for words in ranks], [("0", "6"), ("1", "6")])
        self.assertEqual([" ".join(words[-4:-2]) for words in ranks], ["100 us", "0 ns"])  # waited; then between steps

    def test_mfu_of_the_trace_itself(self):
        figures = {"flops_per_token": 6e9, "flops_per_token_palm": 9e9, "tokens_per_step": 100, "peak_flops_per_s": 1e15,
                   "unprofiled_step_ms": 0.8}
        metrics = self.report(write(self.folder / "rank-0.json", trace(step_events(0), sidestream=figures)))["metrics"]
        self.assertAlmostEqual(metrics["mfu"], 0.6)
        self.assertAlmostEqual(metrics["mfu_palm"], 0.9)
        self.assertAlmostEqual(metrics["profiler_cost"], 0.25)
        self.assertEqual(metrics["mfu_source"], "steps of the trace")

    def test_a_cost_of_the_profiler_that_steps_scatter_more_than_is_not_told(self):
        for plain_ms, deviation_ms in (1.2, 0.01), (0.99, 0.1):  # shorter, and less than they scatter
            figures = {"unprofiled_step_ms": plain_ms, "unprofiled_step_deviation_ms": deviation_ms, "unprofiled_steps": 4}
            file = write(self.folder / "rank-0.json", trace(step_events(0), sidestream=figures))
            metrics = self.report(file)["metrics"]
            self.assertIsNone(metrics["profiler_cost"])
            self.assertGreater(metrics["profiler_cost_below"], 0)
            text = " ".join(self.succeed("report", file).stdout.split())
            self.assertIn("What the profiler costs the steps of this trace is within their scatter", text)
            self.assertIn("compared with the 4 without the profiler until it was written", text)
            self.assertEqual(metrics["steps_without_profiler"], 4)
            self.assertNotIn("longer than", text)

    def test_tensor_cores_by_name_hopper_too(self):
        names = {"sm90_xmma_gemm_bf16": 1, "nvjet_tst_128x64": 1, "cutlass3x_sm90_tensorop_x": 1, "flash_fwd_kernel": 1,
                 "ampere_s16816gemm": 1, "void elementwise_kernel": 0, "sgemm_32x32": 0}
        events = [complete("kernel", name, 10 * number, 4, stream=7) for number, name in enumerate(names)]
        metrics = self.report(write(self.folder / "rank-0.json", trace(events)))["metrics"]
        self.assertAlmostEqual(metrics["tensor_core_share"], sum(names.values()) / len(names))
        self.assertEqual(metrics["tensor_core_source"], "kernel names")

    def test_numbers_do_not_depend_on_the_number_of_threads(self):
        reports = []
        for threads in (1, 4):
            file = self.folder / f"{threads}.json"
            self.succeed("report", DATA / "generated_3ranks", "--quiet", "--threads", threads, "--json", file)
            reports.append(file.read_text())
        self.assertEqual(*reports)


if __name__ == "__main__":
    unittest.main()
