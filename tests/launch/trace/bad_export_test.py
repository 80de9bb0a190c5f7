"""Bad exports of Nsight Systems to `sidestream-trace`: a clear message and exit code 3, or a warning where the rest is usable."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import unittest

from support import PROGRAM, ROOT, TraceTest, write

NSYS_EXPORT = ROOT / "tests/data/traces/nsys_cpu_2ranks/rank_00000.sqlite"


class ExportTest(TraceTest):
    def damaged(self, statement):
        """A whole export after a statement, and how many rows that changed."""
        path = self.folder / "rank_00000.sqlite"
        shutil.copyfile(NSYS_EXPORT, path)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            return path, database.execute(statement).rowcount


class UnusableExportTest(ExportTest):
    def test_sqlite_that_is_no_export(self):
        self.refused("another kind of SQLite database", self.export("CREATE TABLE people(name TEXT)"))

    def test_export_without_any_table_that_is_read(self):
        self.refused("record with -t cuda,nvtx", self.export("CREATE TABLE StringIds(id INTEGER, value TEXT)"))

    def test_damaged_database(self):
        (self.folder / "bad.sqlite").write_bytes(b"SQLite format 3\0" + os.urandom(5000))
        self.refused("bad.sqlite.*readable SQLite", self.folder / "bad.sqlite")

    def test_an_export_that_was_cut(self):
        """Wherever: its header says how many pages there are."""
        whole = NSYS_EXPORT.read_bytes()
        for size in len(whole) * 9 // 10, len(whole) - 1, len(whole) // 2, 4096:
            with self.subTest(size):
                (self.folder / "cut.sqlite").write_bytes(whole[:size])
                self.refused(f"cut.sqlite, byte {size}: expected {len(whole)} bytes, .* pages of .* found the end", self.folder / "cut.sqlite")

    def test_more_processes_than_an_export_can_have(self):
        rows = ", ".join(f"(1, 2, {device})" for device in range(1100))
        self.refused("more than 1024 devices", self.export(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER);"
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {rows}"))

    def test_a_view_in_place_of_a_table(self):
        self.refused("another kind of SQLite database", self.export(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) "
            "SELECT i AS start, i AS end FROM n"))

    def test_folder_of_reports_of_nsys_without_nsys(self):
        for name in ("recording-1", "recording-2"):
            write(self.folder / name / "rank_00000.nsys-rep", "x")
        done = subprocess.run([PROGRAM, "report", self.folder], text=True, capture_output=True, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 3)
        self.assertIn("nsys export -t sqlite --lazy=false rank_00000.nsys-rep", done.stderr)

    def test_report_of_nsys_without_nsys(self):
        write(self.folder / "a.nsys-rep", "x")
        done = subprocess.run([PROGRAM, "report", self.folder / "a.nsys-rep"], text=True, capture_output=True,
                              env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 3)
        self.assertIn("nsys export -t sqlite --lazy=false a.nsys-rep", done.stderr)


class UsableExportTest(ExportTest):
    def test_an_export_whose_header_does_not_count_its_pages(self):
        """As old programs write it: their count is of another version of the file. Longer than its count is fine, too."""
        whole = NSYS_EXPORT.read_bytes()
        old = whole[:28] + (1 << 20).to_bytes(4, "big") + whole[32:92] + b"\0\0\0\0" + whole[96:]
        for name, content in ("old", old), ("longer", whole + bytes(8192)):
            (self.folder / f"{name}.sqlite").write_bytes(content)
            self.succeed("report", self.folder / f"{name}.sqlite")

    def test_an_export_whose_ranges_lack_a_column(self):
        self.assertIn("NVTX_EVENTS has no column eventType: it is not read", self.warning_of(self.export(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 0);"
            "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, globalTid INTEGER, text TEXT)")))

    def test_an_export_whose_names_lack_their_columns(self):
        self.assertIn("StringIds has no column id: kernels have no names", self.warning_of(self.export(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, shortName INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 2);"
            "CREATE TABLE StringIds(number INTEGER, text TEXT)")))

    def test_an_export_without_the_table_of_names(self):
        path, _ = self.damaged("DROP TABLE StringIds")
        self.assertIn("no table StringIds: ranges whose names are kept there have none", self.warning_of(path))

    def test_report_of_nsys_with_one_that_was_fetched(self):
        """Beside the build folder, where launch/fetch-nsys unpacks it; the stub copies an export."""
        program = self.folder / "build/release/sidestream-trace"
        program.parent.mkdir(parents=True)
        shutil.copy2(PROGRAM, program)
        nsys = write(self.folder / "build/nsight/root/usr/lib/nsight-systems/target/nsys",
                     f"#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nexec /bin/cp {NSYS_EXPORT} \"$2\"\n")
        nsys.chmod(0o755)
        write(self.folder / "build/nsight/complete", "")
        write(self.folder / "a.nsys-rep", "x")
        done = subprocess.run([program, "report", self.folder / "a.nsys-rep", "--quiet", "--json", self.folder / "r.json"],
                              text=True, capture_output=True, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual(report["import"]["files"], ["a.sqlite"])
        self.assertEqual(len(report["steps"]), len(self.report(NSYS_EXPORT)["steps"]))

    def test_an_export_that_lacks_tables(self):
        report = self.report(self.export(
            "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT);"
            "INSERT INTO NVTX_EVENTS VALUES (10, 400, 59, 'ProfilerStep#5', 16777217), (20, 100, 59, 'forward', 16777217)"))
        self.assertEqual([(step["step"], step["compute_ns"]) for step in report["steps"]], [(5, 80)])


class TimesTest(ExportTest):
    """SQLite keeps any type and any size in any column."""

    KERNELS = ("CREATE TABLE StringIds(id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'gemm');"
               "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, shortName INTEGER);"
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 60, 0, 1);")

    def test_ends_and_starts_that_cannot_be(self):
        """Left out, counted and said, in a report and by merge; shares stay shares."""
        for value, reason, said in (("9223372036854775807", "time out of range", "of less than 104 days, found '9223372036854775807'"),
                                    ("1764150000000000000", "time out of range", "found '1764150000000000000'"),  # since 1970
                                    ("-9223372036854775807 - 1", "time out of range", "found '-9223372036854775808'"),
                                    ("1e30", "time out of range", "found '1.0e+30'"),
                                    ("'soon'", "time that is no number", "in nanoseconds, found 'soon'"),
                                    ("x'31'", "time that is no number", "in nanoseconds, found '1'"),
                                    ("NULL", None, None)):
            for column in "start", "end":
                with self.subTest(column=column, value=value):
                    path, rows = self.damaged(f'UPDATE NVTX_EVENTS SET "{column}" = {value} WHERE eventType IN (59, 60) AND rowid % 7 = 0')
                    report = self.report(path)
                    reason_here = reason or {"start": "no time", "end": "no end"}[column]
                    self.assertEqual(report["import"]["skipped"], {reason_here: rows})
                    for step in report["steps"]:
                        self.assertLess(step["window_ns"], 10**10)
                        self.assertEqual(step["window_ns"], step["compute_ns"] + step["exposed_comm_ns"]
                                         + step["exposed_memcpy_ns"] + step["idle_ns"])
                    warnings = " ".join(report["import"]["warnings"])
                    merged = self.succeed("merge", path, "-o", self.folder / "m.json")
                    for text in warnings, merged.stderr:
                        if reason:
                            self.assertRegex(text, f"{rows} rows are left out for times that cannot be; the first is "
                                                   f"in NVTX_EVENTS, '.+': expected \"{column}\".*")
                            self.assertIn(said, text)
                        else:
                            self.assertNotIn("times that cannot be", text)
                    spans = [event["dur"] for event in json.loads((self.folder / "m.json").read_text())["traceEvents"] if "dur" in event]
                    self.assertTrue(spans)
                    self.assertLess(max(spans), 10**8)

    def test_an_end_before_its_start_on_a_device(self):
        report = self.report(self.export(self.KERNELS + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (90, 70, 0, 1)"))
        self.assertEqual(report["import"]["skipped"], {"negative duration": 1})
        self.assertIn("export.sqlite: 1 row is left out for times that cannot be; the first is in CUPTI_ACTIVITY_KIND_KERNEL, 'gemm': "
                      "expected \"end\" at or behind \"start\", found '70'", report["import"]["warnings"])

    def test_a_session_that_began_at_no_time(self):
        for value, found in (("9223372036854775807", "9223372036854775807"), ("-9000000000000000000", "-9000000000000000000"), ("'noon'", "noon")):
            with self.subTest(value):
                path = self.export(self.KERNELS + "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);"
                                   f"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({value})")
                report = self.report(path)
                warnings = " ".join(report["import"]["warnings"])
                self.assertRegex(warnings, f"utcEpochNs, .* since 1970, until 2043, found '{found}': 0 is taken")
                self.succeed("merge", path, "-o", self.folder / "m.json")
                self.assertEqual(json.loads((self.folder / "m.json").read_text())["baseTimeNanoseconds"], 20)

    def test_samples_of_a_gpu_at_times_that_cannot_be(self):
        report = self.report(self.export(
            self.KERNELS + "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INTEGER, metricId INTEGER, metricName TEXT);"
            "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (0, 1, 'SMs Active [Throughput %]');"
            "CREATE TABLE GPU_METRICS(timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);"
            "INSERT INTO GPU_METRICS VALUES (30, 0, 1, 50), ('late', 0, 1, 50), (9223372036854775807, 0, 1, 50), (35, 0, 1, 'much')"))
        self.assertIn("2 rows are left out for times that cannot be; the first is in GPU_METRICS", " ".join(report["import"]["warnings"]))
        self.assertEqual(report["import"]["skipped"], {"time that is no number": 1, "time out of range": 1, "value that is no number": 1})
        self.assertEqual(report["import"]["events"], 2)  # the kernel and the sample that can be


if __name__ == "__main__":
    unittest.main()
