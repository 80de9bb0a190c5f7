"""Where the time of a trace went, by counting: an oracle that shares no code with sidestream-trace.

    python tests/reference/trace_truth.py FOLDER [--write]     # prints expected_truth.json, or writes it into FOLDER

Reads Kineto JSON whole (and ranges of Nsight Systems exports of host ranks), turns microseconds into integer nanoseconds through Decimal, and walks over the sorted ends of
all intervals. Definitions: compute is every kernel that is no collective (nccl, rccl in any case); a step is the host
range ProfilerStep#N; the window of a device is the first start to the last end; the shortest of a matched collective is
its transfer, the rest of each rank's duration is waiting. A trace without device events but with forward, backward or
optimizer ranges is a host rank: its operators and these ranges are compute, less the collectives on the same thread.
"""
import collections
import decimal
import gzip
import json
import pathlib
import re
import sqlite3
import sys

PARTS = ["compute", "comm", "memcpy", "overlapped_comm", "exposed_comm", "exposed_memcpy", "idle"]
CATEGORIES = {"kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
              "gpu_memset": "memset", "Memset": "memset"}


COMPUTE_RANGES = {"forward", "backward", "optimizer", "zero_grad", "eval"}
COLLECTIVE_RANGES = {"allreduce", "reduce_scatter", "all_gather", "broadcast", "barrier"}


def nanoseconds(number):
    return int((decimal.Decimal(number) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def read(path):
    opened = gzip.open(path, "rt", errors="replace") if path.suffix == ".gz" else open(path, errors="replace")
    with opened as file:
        return json.load(file, parse_float=decimal.Decimal, parse_int=decimal.Decimal, strict=False)


def is_collective(event):
    if event.get("host"):
        return event["name"] in COLLECTIVE_RANGES
    return CATEGORIES[event["cat"]] == "kernel" and event["name"].lower().startswith(("nccl", "rccl"))


def interval(event):
    if "interval" in event:
        return event["interval"]
    start = nanoseconds(event["ts"])
    return start, start + nanoseconds(event["dur"])


def budget(device, start, end):
    """Nanoseconds of each kind of moment between start and end."""
    changes = collections.defaultdict(lambda: [0, 0, 0])
    for event in device:
        kind = 1 if is_collective(event) else 0 if CATEGORIES[event["cat"]] == "kernel" else 2
        first, last = interval(event)
        first, last = max(first, start), min(last, end)
        if first < last:
            changes[first][kind] += 1
            changes[last][kind] -= 1
    sums, open_now, at = dict.fromkeys(PARTS, 0), [0, 0, 0], start
    for moment in sorted([*changes, end]):
        length, (compute, comm, memcpy) = moment - at, open_now
        sums["compute"] += length * bool(compute)
        sums["comm"] += length * bool(comm)
        sums["memcpy"] += length * bool(memcpy)
        sums["overlapped_comm"] += length * bool(compute and comm)
        sums["exposed_comm"] += length * bool(comm and not compute)
        sums["exposed_memcpy"] += length * bool(memcpy and not compute and not comm)
        sums["idle"] += length * (not compute and not comm and not memcpy)
        at = moment
        open_now = [a + b for a, b in zip(open_now, changes.get(moment, [0, 0, 0]))]
    return {"start": start, "end": end, "window": end - start, **sums}


def without(intervals, holes):
    """What of the intervals lies in none of the holes."""
    for first, last in holes:
        intervals = [part for start, end in intervals
                     for part in ((start, min(end, first)), (max(start, last), end)) if part[0] < part[1]]
    return intervals


def host_work(events):
    ranges = [event for event in events if event.get("cat") == "user_annotation"]
    if not any(event["name"] in COMPUTE_RANGES | COLLECTIVE_RANGES for event in ranges):
        return []
    work = []
    for thread in {event["tid"] for event in events}:
        here = [event for event in events if event["tid"] == thread]
        waits = [event for event in here if event in ranges and event["name"] in COLLECTIVE_RANGES]
        computes = [event for event in here if event.get("cat") in ("cpu_op", "Operator")
                    or event in ranges and event["name"] in COMPUTE_RANGES]
        holes = [interval(event) for event in waits]
        pieces = [(event["name"], part) for event in computes for part in without([interval(event)], holes)]
        pieces += [(event["name"], interval(event)) for event in waits]
        work += [{"host": True, "cat": "kernel", "name": name, "interval": part} for name, part in pieces]
    return work


def rank_truth(events):
    found = [event for event in events if event.get("cat") in CATEGORIES]
    counts = collections.Counter(CATEGORIES[event["cat"]] for event in found)
    device = found or host_work(events)
    window = None
    if device:
        ends = [interval(event) for event in device]
        window = budget(device, min(one[0] for one in ends), max(one[1] for one in ends))
    totals = collections.defaultdict(lambda: [0, 0])
    for event in found:
        if CATEGORIES[event["cat"]] == "kernel":
            first, last = interval(event)
            totals[event["name"]][0] += last - first
            totals[event["name"]][1] += 1
    steps = sorted((event for event in events if re.match(r"ProfilerStep#\d+", event["name"])
                    and event.get("cat") in ("user_annotation", "cpu_op", "Operator")), key=interval)
    return {"gpu_events": dict(counts), "comm_kernels": sum(map(is_collective, found)),
            "streams": sorted({str(event["args"].get("stream", event["tid"])) for event in found}),
            "gpu_window": window,
            "steps": [{"name": event["name"], **budget(device, *interval(event))} for event in steps],
            "top5": [{"name": name, "count": count, "total": total} for name, (total, count)
                     in sorted(totals.items(), key=lambda one: -one[1][0])[:5]]}


def groups_of(events):
    """Collectives by process group, else by the rank of their stream among those that carry some; ranges as one group."""
    if not any(event.get("cat") in CATEGORIES for event in events):
        found = [event for event in events if event["name"] in COLLECTIVE_RANGES]
        return {"sidestream": sorted(found, key=lambda event: interval(event)[0])} if found else {}
    found = sorted((event for event in events if event.get("cat") in CATEGORIES and is_collective(event)), key=interval)
    without = sorted({int(event["args"]["stream"]) for event in found if "Process Group Name" not in event["args"]})
    groups = collections.defaultdict(list)
    for event in found:
        arguments = event["args"]
        if "Process Group Name" in arguments:
            ranks = arguments.get("Process Group Ranks")
            group = f"pg:{arguments['Process Group Name']}" + (f":{ranks}" if ranks else "")
        else:
            group = f"stream#{without.index(int(arguments['stream']))}"
        groups[group].append(event)
    return groups


def collectives_truth(ranks):
    groups = {rank: groups_of(events) for rank, events in ranks.items()}
    truth = {"matched": 0, "unmatched_groups": {}, "total_wait_ns": collections.Counter(), "list": []}
    for group in sorted(set().union(*groups.values())):
        members = {rank: groups[rank][group] for rank in ranks if group in groups[rank]}
        if len(members) < 2 or len({len(events) for events in members.values()}) > 1:
            truth["unmatched_groups"][group] = {str(rank): len(events) for rank, events in members.items()}
            continue
        for index, parts in enumerate(zip(*members.values())):
            sequence = parts[0]["args"].get("Seq")
            lengths = {str(rank): interval(event)[1] - interval(event)[0] for rank, event in zip(members, parts)}
            transfer = min(lengths.values())
            waits = {rank: length - transfer for rank, length in lengths.items()}
            truth["total_wait_ns"].update(waits)
            truth["list"].append({"group": group, "index": index if sequence is None else int(sequence),
                                  "kernel": parts[0]["name"], "transfer_ns": transfer, "dur_ns": lengths,
                                  "wait_ns": waits})
    truth["matched"] = len(truth["list"])
    return truth


def ranges_of_export(path):
    """NVTX ranges of threads, as Kineto events. Kernels of an export are not for this oracle."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = database.execute("SELECT coalesce(s.value, n.text), n.start, n.end, n.globalTid FROM NVTX_EVENTS n LEFT JOIN "
                            "StringIds s ON n.textId = s.id WHERE n.eventType IN (59, 60) AND n.end IS NOT NULL")
    return [{"ph": "X", "cat": "user_annotation", "name": name, "interval": (start, end), "tid": thread, "args": {}}
            for name, start, end, thread in rows]


def truth_of(folder):
    ranks = {int(path.stem[-5:]): ranges_of_export(path) for path in folder.glob("rank_*.sqlite")}
    for path in sorted(folder.glob("*rank-*.json*")):
        content = read(path)
        named = content.get("distributedInfo", {}).get("rank")
        number = named if named is not None else re.search(r"rank-(\d+)", path.name)[1]
        ranks[int(number)] = [event for event in content["traceEvents"] if event.get("ph") == "X"]
    ranks = dict(sorted(ranks.items()))
    return {"units": "integer nanoseconds; start/end in the trace's own clock",
            "ranks": {str(rank): rank_truth(events) for rank, events in ranks.items()},
            "collectives": collectives_truth(ranks)}


def main():
    folder = pathlib.Path(sys.argv[1])
    text = json.dumps(truth_of(folder), indent=1) + "\n"
    if "--write" in sys.argv:
        (folder / "expected_truth.json").write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
