"""A copy of a Nsight Systems export with nothing in it but events: no environment, no processes, no paths of a machine.

    python tests/reference/scrub_nsys.py FULL.sqlite SMALL.sqlite

Keeps the tables that sidestream-trace reads, and of the texts those that they name.
"""
import pathlib
import sqlite3
import sys

EVENTS = ["NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
          "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API"]
KEPT = [*EVENTS, "StringIds", "TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_GPU"]


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    target.unlink(missing_ok=True)
    small = sqlite3.connect(f"file:{target.resolve()}", uri=True)
    small.execute("ATTACH ? AS full", (f"file:{source.resolve()}?mode=ro",))
    tables = [name for name, in small.execute("SELECT name FROM full.sqlite_master WHERE type = 'table'") if name in KEPT]
    texts = set()
    for table in tables:
        small.execute(f"CREATE TABLE {table} AS SELECT * FROM full.{table}")
        columns = [row[1] for row in small.execute(f"PRAGMA table_info({table})")]
        for column in columns if table in EVENTS else []:
            if column.endswith(("nameId", "textId", "Name")):
                texts |= {row[0] for row in small.execute(f"SELECT DISTINCT {column} FROM {table}")}
    keep = ",".join(str(one) for one in texts if one is not None) or "-1"
    small.execute(f"DELETE FROM StringIds WHERE id NOT IN ({keep})")
    small.commit()
    small.execute("DETACH full")
    small.execute("VACUUM")
    small.close()


if __name__ == "__main__":
    main()
