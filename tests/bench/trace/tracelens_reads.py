"""What `train --profile` wrote loads in TraceLens, with the ranks and the steps that `sidestream-trace report` sees in it.

    PYTHON tests/bench/trace/tracelens_reads.py RUN [--program build/release/sidestream-trace]

PYTHON has github.com/AMD-AGI/TraceLens, which is not on PyPI. Every file is read into its tree of calls, the files of each
window are fused into one trace of all ranks; prints what was read, and ends with 1 where anything differs.
"""
import argparse
import contextlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from TraceLens import TraceFuse, TreePerfAnalyzer

ROOT = pathlib.Path(__file__).resolve().parents[3]


def steps_we_see(program, run):
    """rank -> steps"""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run([program, "report", run, "--quiet", "--json", report], check=True)
        steps = {}
        for row in json.loads(report.read_text())["steps"]:
            steps.setdefault(row["rank"], set()).add(row["step"])
    return steps


def steps_of(events):
    names = {event["name"] for event in events if event.get("name", "").startswith("ProfilerStep#")}
    return {int(name.removeprefix("ProfilerStep#")) for name in names}


def read_files(files):
    """rank -> steps, and rank -> operators that are in a tree of calls."""
    steps, operators = {}, {}
    for file in files:
        tree = TreePerfAnalyzer.from_file(str(file)).tree
        rank = tree.trace_metadata["distributedInfo"]["rank"]
        steps.setdefault(rank, set()).update(steps_of(tree.events))
        operators[rank] = operators.get(rank, 0) + sum(event.get("cat") == "cpu_op" for event in tree.events)
    return steps, operators


def fuse(files):
    """rank -> steps, of one window."""
    steps = {}
    for event in TraceFuse([str(file) for file in files]).merge():
        rank = event.get("args", {}).get("rank")
        if rank is not None and event.get("ph") == "X":
            steps.setdefault(rank, set()).update(steps_of([event]))
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/sidestream-trace")
    options = parser.parse_args()
    expected = steps_we_see(options.program, options.run)
    windows = {}
    for file in sorted((options.run / "trace").glob("*/*.pt.trace.json.gz")):
        windows.setdefault(file.parent.name, []).append(file)
    fused = {}
    with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
        steps, operators = read_files([file for files in windows.values() for file in files])
        for files in windows.values():
            for rank, of_window in fuse(files).items():
                fused.setdefault(rank, set()).update(of_window)
    print(f"TraceLens {importlib.metadata.version('TraceLens')}: {len(windows)} windows, ranks {sorted(steps)}, steps "
          f"{sorted(set().union(*steps.values()))}, operators {operators}")
    for what, found in (("file by file", steps), ("fused", fused)):
        if found != expected:
            sys.exit(f"{what}: expected steps {expected} by rank, found {found}")
    if not expected or not all(operators.values()):
        sys.exit(f"nothing to compare: {expected}, {operators}")


if __name__ == "__main__":
    main()
