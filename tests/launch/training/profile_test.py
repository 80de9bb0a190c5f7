"""`--profile`: a window of every operator on every rank, in the form that PyTorch's own tools read, and training is the same
with it."""

import gzip
import json
import pathlib
import re
import subprocess

from figures import check_figures, pretend_ceilings
from privacy import check_nothing_private
from support import BINARY, SMALL, check, losses, make_data, train, workspace

RANKS, STEPS = 2, 17
TRACE = BINARY.parent / "sidestream-trace"
DETAILS = ["--profile-shapes", "--profile-memory", "--profile-stacks", "--profile-flops", "--profile-modules"]


def read(file):
    with gzip.open(file, "rt") as text:
        return json.load(text)


def operators(trace, name=None):
    return [event for event in trace["traceEvents"]
            if event["ph"] == "X" and event.get("cat") == "cpu_op" and (name is None or event["name"] == name)]


def step_numbers(trace):
    return sorted(int(event["name"].split("#")[1]) for event in trace["traceEvents"]
                  if event["ph"] == "X" and event["name"].startswith("ProfilerStep#"))


def check_windows(run_dir):
    windows = sorted(path.name for path in (run_dir / "trace").iterdir())
    check(windows == ["step_00000008", "step_00000016"], f"windows {windows}")
    for window, steps in ("step_00000008", [6, 7, 8]), ("step_00000016", [14, 15, 16]):
        names = sorted(path.name for path in (run_dir / "trace" / window).iterdir())
        check(names == ["clock.json"] + [f"node0_{rank:05}.{steps[-1]}.pt.trace.json.gz" for rank in range(RANKS)], names)
        for rank in range(RANKS):
            trace = read(run_dir / "trace" / window / names[1 + rank])
            check(step_numbers(trace) == steps, f"{window}: steps {step_numbers(trace)}")
            check(trace["distributedInfo"]["rank"] == rank and trace["distributedInfo"]["world_size"] == RANKS, "rank")
            check("traceName" not in trace and "ERROR" not in trace, f"keys {list(trace)}")


def check_events(trace):
    names = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    for name in ("data", "forward", "backward", "optimizer", "allreduce"):
        check(name in names, f"{name} is missing in {sorted(names)[:40]}")
    forward = [event for event in operators(trace) if "aten::" in event["name"]]
    check(len(forward) > 50, f"{len(forward)} operators")
    check(any(event["name"].startswith("autograd::engine::evaluate_function") for event in operators(trace)), "no backward")
    # Operators lie inside our ranges of the same thread: one clock.
    steps = {event["name"]: event for event in trace["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["name"] in ("forward", "backward") and event.get("cat") == "user_annotation":
            inside = [step for step in steps.values() if step["tid"] == event["tid"] and step["ts"] - 50 <= event["ts"]
                      and event["ts"] + event["dur"] <= step["ts"] + step["dur"] + 50]
            check(len(inside) == 1, f"{event} lies in {len(inside)} steps")
    check(any(event["ph"] == "C" for event in trace["traceEvents"]), "no counters")
    threads = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event.get("name") == "thread_name"}
    check(any("ss-loader" in name for name in threads.values()), f"no thread of the loader: {threads}")
    buckets = [event for event in trace["traceEvents"] if event.get("args", {}).get("bucket", -1) >= 0]
    check(buckets and all(threads[event["tid"]].startswith("communication") for event in buckets),
          f"buckets on the lane of collectives: {[(event['name'], threads.get(event['tid'])) for event in buckets][:3]}")


def check_details(trace):
    arguments = [event.get("args", {}) for event in operators(trace)]
    check(sum("Input Dims" in one for one in arguments) > 50, "no shapes")
    check(any(event["name"] == "[memory]" for event in trace["traceEvents"]), "no memory")
    products = [event for event in operators(trace) if event["name"] in ("aten::mm", "aten::addmm", "aten::bmm")]
    check(products and all(event["args"].get("flops", 0) > 0 for event in products), "products without FLOPs")
    for event in products:
        if event["name"] == "aten::mm":
            (rows, inner), (_, columns) = event["args"]["Input Dims"][:2]
            check(event["args"]["flops"] == 2 * rows * inner * columns, f"{event['args']}")
    stacks = [one["Call stack"] for one in arguments if "Call stack" in one]
    check(len(stacks) > len(arguments) / 2, f"{len(stacks)} stacks of {len(arguments)} operators")
    check(any("gpt2" in stack.lower() for stack in stacks), f"no frame of ours: {stacks[:2]}")
    check(not any("/" in frame.split(":")[0] for stack in stacks for frame in stack.split(";")), "a path in a stack")
    modules = {one["Module Hierarchy"] for one in arguments if "Module Hierarchy" in one}
    check("transformer.h.0.mlp" in modules, f"modules {sorted(modules)[:10]}")
    backward = [event for event in operators(trace) if "Backward" in event["name"]
                and event.get("args", {}).get("Module Hierarchy", "").startswith("transformer.h.")]
    check(backward, "no operator of backward knows its layer")


def check_layers_by_name(trace):
    """--profile-modules=transformer.h.*.mlp: operators of other layers belong to none."""
    modules = {event["args"]["Module Hierarchy"] for event in operators(trace) if "Module Hierarchy" in event.get("args", {})}
    check("transformer.h.0.mlp" in modules, f"modules {sorted(modules)[:10]}")
    check(all(re.fullmatch(r"transformer\.h\..*\.mlp", module) for module in modules), f"other layers: {sorted(modules)}")


def check_report(run_dir):
    done = subprocess.run([TRACE, "report", run_dir, "--json", run_dir / "report.json"], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    found = json.loads((run_dir / "report.json").read_text())
    check(sorted({step["step"] for step in found["steps"]}) == [6, 7, 8, 14, 15, 16], "steps of the report")
    check(found["clock"]["method"] == "same host", found["clock"])


def check_tables(run_dir):
    """Every table about a host rank has rows that are true of six steps of two ranks in two windows."""
    found = json.loads((run_dir / "report.json").read_text())
    rows = {name: [dict(zip(table["columns"], row)) for row in table["rows"]] for name, table in found["tables"].items()}
    empty = {name for name, table in rows.items() if not table}
    check(empty == {"kernels", "overlap_tax"}, f"tables without a row: {empty}")
    counts = {}
    for row in rows["collectives"]:
        if row["name"] == "allreduce" and row["bucket"] is not None:
            counts[row["bucket"]] = counts.get(row["bucket"], 0) + row["count"]
    check(counts and set(counts.values()) == {6}, f"all-reduces of each bucket of a rank: {counts}")
    phases = [(rank, phase) for rank in range(RANKS) for phase in ("backward", "data", "forward", "optimizer", "zero_grad")]
    check(sorted((row["rank"], row["phase"]) for row in rows["data"]) == sorted(phases + [(0, "log")]), rows["data"])
    end_ns = max(step["start_ns"] + step["window_ns"] for step in found["steps"])
    for name, column in ("memory", "time_ns"), ("memory_curve", "time_ns"), ("memory_peaks", "peak_time_ns"), ("distributed", "start_ns"):
        outside = [row for row in rows[name] if not -1e9 < row[column] < end_ns + 1e9]
        check(not outside, f"{name}: times that do not count from the first step: {outside[:2]}")
    top = {one["name"]: one for one in found["top_ops"]}
    check("backward" in top and top["backward"]["calls"] == RANKS * 6, f"longest operations {list(top)}")
    check(not any(one["bytes"] for name, one in top.items() if "Backward" in name), "nodes of autograd move nothing themselves")
    check(found["verdict"] in ("compute", "comm", "io", "cpu"), found["verdict"])


def check_modules_of_fused_operators(run_dir):
    """Two steps of two ranks: each layer's one fused operator in forward, and its backward."""
    done = subprocess.run([TRACE, "report", run_dir, "--quiet", "--json", run_dir / "report.json"], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)
    table = json.loads((run_dir / "report.json").read_text())["tables"]["modules"]
    rows = {(row["kind"], row["module"]): row for row in (dict(zip(table["columns"], row)) for row in table["rows"])}
    mlp = rows["module", "transformer.h.0.mlp"]
    check(mlp["calls"] == RANKS * 2, f"calls of the MLP: {mlp}")
    check(0 < mlp["backward_host_ns"] and 0 < mlp["host_total_ns"], mlp)


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        pretend_ceilings(root)
        fused = SMALL + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "4", "--steps", str(STEPS)]
        flags = fused + ["--fused-ops", "off"]
        profile = ["--profile", "wait=4,warmup=1,active=3,repeat=2"]
        train(RANKS, root / "plain", flags)
        train(RANKS, root / "window", flags + profile + ["--sample-hz", "100"] + DETAILS)
        check(losses(root / "plain") == losses(root / "window"), "losses differ with the profiler")
        check_windows(root / "window")
        check_nothing_private(root / "window")
        trace = read(next((root / "window/trace/step_00000008").glob("*_00001.*")))
        check_events(trace)
        check_details(trace)
        check_report(root / "window")
        check_tables(root / "window")
        check_figures(root / "window", profiled_steps=[6, 7, 8, 14, 15, 16], warm_up_steps=[5, 13])
        train(RANKS, root / "both", flags + ["--profile", "wait=2,warmup=1,active=2", "--record", "on",
                                             "--profile-modules=transformer.h.*.mlp"])
        files = sorted(path.parent.name for path in (root / "both/trace").glob("*/*_00000.*"))
        check(files == ["step_00000003", "step_00000005", "step_00000017"], f"files {files}")
        everything = [step for file in (root / "both/trace").glob("*/*_00000.*") for step in step_numbers(read(file))]
        check(sorted(everything) == list(range(1, STEPS + 1)), f"steps {sorted(everything)}")
        check_layers_by_name(read(next((root / "both/trace/step_00000005").glob("*_00000.*"))))
        anywhere = root / 'a "folder" of one\'s \\own'
        train(RANKS, anywhere, fused + ["--profile", "wait=2,warmup=1,active=2", "--profile-modules"])
        check_modules_of_fused_operators(anywhere)


main()
