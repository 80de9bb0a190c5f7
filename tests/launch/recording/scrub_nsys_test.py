"""launch/scrub-trace on an export of Nsight Systems: no byte of the copy says whose machine it was, events are as they were."""

import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "launch/scrub-trace"
RANK, DAEMON = 7 << 24, 8 << 24
ENVIRONMENT = "CONTAINER_NAME=secret-box\0HOME=/mnt/alice\0COLLECT_GCC=/usr/bin/c++\0OMPI_MCA_orte_hnp_uri=1.0;tcp://10.9.8.7:4"
SECRETS = [b"secret", b"alice", b"CONTAINER_NAME", b"HOME=", b"COLLECT_GCC", b"10.9.8.7", b"11223344-5566", b"CST"]
PAYLOAD = bytes(range(24))
TABLES = {
    "StringIds (id INTEGER PRIMARY KEY, value TEXT)": [
        (1, "/mnt/alice/bin/gemm"), (2, "gemm_kernel"), (3, ENVIRONMENT), (4, "secret-daemon"), (5, "main thread"),
        (6, "/tmp/secret/stdout.log"), (7, "by secret-user")],
    "TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT, value TEXT)": [(0, "DeviceEnvironment", "USER=alice")],
    "EXPORT_META_DATA (name TEXT, value TEXT)": [("EXPORT_PRODUCT_VERSION", "2022.4.2.1"), ("EXPORT_HOST", "secret-box"),
                                                 ("EXPORT_INPUT_PATH", "/mnt/alice/x.nsys-rep")],
    "META_DATA_CAPTURE (name TEXT, value TEXT)": [("COMMAND_LINE", "secret")],
    "ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)": [(RANK, 6, 7)],
    "TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, localTime TEXT)": [(17, "2026-08-02T05:34:06 +0800 CST")],
    "TARGET_INFO_GPU (id INTEGER, name TEXT, uuid TEXT)": [(0, "some GPU", "11223344-5566")],
    "PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)": [(RANK, 7, "/mnt/alice/train"), (DAEMON, 8, "secret-daemon")],
    "ThreadNames (nameId INTEGER, globalTid INTEGER)": [(5, RANK + 9), (4, DAEMON + 8)],
    "SCHED_EVENTS (start INTEGER, globalTid INTEGER)": [(1, RANK + 9), (2, DAEMON + 8)],
    "CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER, demangledName INTEGER)": [(10, 20, 2, 1)],
    # A text where a number is declared, and a structure with a text in it.
    "NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, globalTid INTEGER, category INTEGER, binaryData BLOB)": [
        (1, 2, "step", RANK + 9, "/mnt/alice/x", PAYLOAD), (3, 4, "step", RANK + 9, 5, b"\0\0secret-text\0")],
}


class ScrubNsysTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sidestream-scrub-")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.path = self.root / "rank #1_00001.sqlite"
        self.copy = self.root / "out/rank_00001.sqlite"

    def scrub(self, tables):
        database = sqlite3.connect(self.path)
        for table, rows in tables.items():
            database.execute(f"CREATE TABLE {table}")
            database.executemany(f"INSERT INTO {table.split()[0]} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        database.commit()
        database.close()
        return subprocess.run([sys.executable, SCRIPT, self.path, "--output", self.copy.parent], capture_output=True, text=True)

    def rows(self, table):
        return sqlite3.connect(self.copy).execute(f"SELECT * FROM {table}").fetchall()

    def test_only_events_are_left(self):
        done = self.scrub(TABLES)

        self.assertEqual(done.returncode, 0, done.stderr)
        for secret in SECRETS:
            self.assertIn(secret, self.path.read_bytes())
            self.assertNotIn(secret, self.copy.read_bytes())
        self.assertEqual(self.rows("StringIds"), [(1, "gemm"), (2, "gemm_kernel"), (5, "main thread")])
        self.assertEqual(self.rows("EXPORT_META_DATA"), [("EXPORT_PRODUCT_VERSION", "2022.4.2.1")])
        self.assertEqual(self.rows("TARGET_INFO_SESSION_START_TIME"), [(17, None)])
        self.assertEqual(self.rows("TARGET_INFO_GPU"), [(0, "some GPU", None)])
        self.assertEqual(self.rows("PROCESSES"), [(RANK, 7, "train")])
        self.assertEqual(self.rows("ThreadNames"), [(5, RANK + 9)])
        self.assertEqual(self.rows("SCHED_EVENTS"), [(1, RANK + 9)])
        self.assertEqual(self.rows("CUPTI_ACTIVITY_KIND_KERNEL"), [(10, 20, 2, 1)])
        self.assertEqual(self.rows("NVTX_EVENTS"), [(1, 2, "step", RANK + 9, "x", PAYLOAD), (3, 4, "step", RANK + 9, 5, None)])
        self.assertEqual([path.name for path in self.copy.parent.iterdir()], [self.copy.name])

    def test_an_environment_in_a_name_is_refused(self):
        done = self.scrub({"NVTX_EVENTS (start INTEGER, text TEXT)": [(1, "A=1\0HOME=here")]})

        self.assertEqual(done.returncode, 3)
        self.assertIn("still holds an environment", done.stderr)
        self.assertEqual(list(self.copy.parent.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
