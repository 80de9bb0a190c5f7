"""A big Nsight Systems export from a small one: its kernels, copies and runtime calls again and again, later in time. Each call of
the runtime launches a kernel, one of those of the small export in turn: in a training there are about as many of one as of the other.

    python tests/bench/trace/replicate_nsys.py SMALL.sqlite BIG.sqlite --rows 3000000 --devices 8
"""
import argparse
import shutil
import sqlite3

TABLES = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME",
          "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"]

KERNELS, RUNTIME = TABLES[0], TABLES[2]
PERIOD_NS = 5_000_000  # from one kernel of a copy to the next


def one_for_each(kernels, calls, columns):
    """A kernel for every call, one after the other on the device."""
    places = {name: columns[KERNELS].index(name) for name in ("start", "end", "correlationId")}
    made = []
    for number, call in enumerate(calls):
        kernel = list(kernels[number % len(kernels)])
        length = min(kernel[places["end"]] - kernel[places["start"]], PERIOD_NS)
        kernel[places["start"]] = kernels[0][places["start"]] + number * PERIOD_NS
        kernel[places["end"]] = kernel[places["start"]] + length
        kernel[places["correlationId"]] = call[columns[RUNTIME].index("correlationId")]
        made.append(kernel)
    return made


def shifted(row, names, copy, span, devices):
    values = list(row)
    for name in ("start", "end"):
        values[names.index(name)] += copy * span
    values[names.index("correlationId")] += copy * 1000
    if "deviceId" in names:
        values[names.index("deviceId")] = copy % devices
    return values


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
    rows[KERNELS] = one_for_each(rows[KERNELS], rows[RUNTIME], columns)
    total, copy, span = sum(map(len, rows.values())), 0, 200_000_000
    while total < options.rows:
        copy += 1
        for table, small in rows.items():
            moved = [shifted(row, columns[table], copy, span, options.devices) for row in small]
            base.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(columns[table]))})", moved)
            total += len(moved)
    base.commit()
    base.close()
    print(f"{total} rows")


if __name__ == "__main__":
    main()
