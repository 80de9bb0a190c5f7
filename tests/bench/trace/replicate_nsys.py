"""A big Nsight Systems export from a small one: its kernels, copies and runtime calls again and again, later in time.

    python tests/bench/trace/replicate_nsys.py SMALL.sqlite BIG.sqlite --rows 3000000 --devices 8
"""
import argparse
import shutil
import sqlite3

TABLES = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME",
          "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("small")
    parser.add_argument("big")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--devices", type=int, default=8)
    options = parser.parse_args()
    shutil.copyfile(options.small, options.big)
    base = sqlite3.connect(options.big)
    base.execute("PRAGMA journal_mode=OFF")
    base.execute("PRAGMA synchronous=OFF")
    rows = {table: base.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    columns = {table: [one[1] for one in base.execute(f"PRAGMA table_info({table})")] for table in TABLES}
    total, copy, span = sum(map(len, rows.values())), 0, 200_000_000
    while total < options.rows:
        copy += 1
        for table, small in rows.items():
            names = columns[table]
            moved = []
            for row in small:
                values = list(row)
                for name in ("start", "end"):
                    values[names.index(name)] += copy * span
                values[names.index("correlationId")] += copy * 1000
                if "deviceId" in names:
                    values[names.index("deviceId")] = copy % options.devices
                moved.append(values)
            base.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(names))})", moved)
            total += len(moved)
    base.commit()
    base.close()
    print(f"{total} rows")


if __name__ == "__main__":
    main()
