"""`sidestream-trace report` against HolisticTraceAnalysis 0.5.0, TraceLens and nsys-ai 0.3.0, interleaved, on generated
input.

    python tests/bench/trace/versus_peers.py [--nsys SMALL.sqlite] [--tracelens PYTHON] [--output FILE]

TraceLens is not on PyPI: --tracelens names a Python in which github.com/AMD-AGI/TraceLens has been installed. The other
peers live in an environment of their own, made from PyPI by the first call. Prints wall and processor seconds, peak
memory of the largest process and of all processes together (HTA starts several), and MB/s. An export of Nsight Systems has to be given:
it is replicated to 3 million rows, and its hash is compared before and after we read it. nsys-ai adds indexes to the
file that it reads and gets a copy of its own for each call.
"""
import argparse
import hashlib
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
import own_environment  # noqa: E402


def measured(command):
    """Wall seconds, processor seconds, peak MB of the largest process, peak MB of all processes together. In an empty folder: nsys-ai
    leaves files where it is started."""
    with tempfile.TemporaryDirectory() as folder:
        output = subprocess.run([sys.executable, HERE / "measured.py", *map(str, command)], capture_output=True, text=True, check=True,
                                cwd=folder)
    code, *figures = map(float, output.stdout.split())
    if code != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed with {code:.0f}")
    return figures


def compare(title, ours, theirs, megabytes, repeats, threads, before_theirs=lambda: None):
    """One after the other, again and again; a table of the medians. `threads`: what the two programs make of several processors."""
    results = {"ours": [], "theirs": []}
    for _ in range(repeats):
        results["ours"].append(measured(ours))
        before_theirs()
        results["theirs"].append(measured(theirs))
    medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in results.items()}
    lines = [f"{title}, {megabytes:.0f} MB, medians of {repeats}", "",
             "Ratios are column by column: of the time that passes, and of the processors' time, which is larger where a program "
             f"runs several threads. {threads}", "",
             "| | wall s | processor s | peak MB, largest process | peak MB, all processes | MB/s |", "|---|--:|--:|--:|--:|--:|"]
    lines += [f"| {name} | {wall:.2f} | {processor:.2f} | {largest:.0f} | {together:.0f} | {megabytes / wall:.0f} |"
              for name, (wall, processor, largest, together) in medians.items()]
    ratios = [theirs / ours for ours, theirs in zip(medians["ours"], medians["theirs"])]
    return lines + ["| theirs / ours | " + " | ".join(f"{ratio:.1f}" for ratio in ratios) + " | |", ""]


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def compare_kineto(options, python, scratch):
    traces = options.traces or scratch / "traces"
    if options.traces is None:
        subprocess.run([sys.executable, HERE / "generate.py", "--ranks", str(options.ranks), "--megabytes",
                        str(options.megabytes), "--output", traces], check=True)
    title, ours = f"Kineto JSON of {options.ranks} ranks; theirs: ", [options.program, "report", traces]
    lines = compare(title + "HolisticTraceAnalysis 0.5.0, load, overlap and temporal breakdown", ours,
                    [python, HERE / "hta_breakdown.py", traces], size_of(traces), options.repeats,
                    "Ours reads a file a thread, HTA a file a process.")
    if options.tracelens is not None:
        lines += compare(title + "TraceLens, load and breakdown of GPU events, one rank after the other", ours,
                         [options.tracelens, HERE / "tracelens_events.py", traces], size_of(traces), options.repeats,
                         "Ours reads a file a thread; TraceLens has one thread: per processor second the ratio is that of the second column.")
    return lines


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compare_nsys(options, python, scratch, devices):
    """nsys-ai diagnoses the first device of an export, our report all of them."""
    big, copy = scratch / "big.sqlite", scratch / "theirs.sqlite"
    subprocess.run([sys.executable, HERE / "replicate_nsys.py", options.nsys, big, "--rows", str(options.rows), "--devices", str(devices)],
                   check=True)
    before = hash_of(big)
    lines = compare(f"SQLite export of Nsight Systems, {options.rows / 1e6:g} million rows, devices: {devices}; theirs: nsys-ai 0.3.0 "
                    "diagnose, one device", [options.program, "report", big], [python.parent / "nsys-ai", "diagnose", copy],
                    big.stat().st_size / 1e6, options.repeats, "One file for both.", lambda: shutil.copyfile(big, copy))
    if hash_of(big) != before:
        raise SystemExit("our report changed its input")
    return lines


def own_sizes(options, scratch):
    """Time and memory of our report over the size of its input: up to 1 GB, and a small export of Nsight Systems."""
    lines = ["Our report alone, medians of %d" % options.repeats, "", "| input | MB | wall s | MB/s | peak MB |", "|---|--:|--:|--:|--:|"]

    def add(name, place, megabytes):
        runs = [measured([options.program, "report", place]) for _ in range(options.repeats)]
        wall, _, largest, _ = [statistics.median(column) for column in zip(*runs)]
        lines.append(f"| {name} | {megabytes:.1f} | {wall:.3f} | {megabytes / wall:.0f} | {largest:.0f} |")

    for each in (6, 25, 128):
        folder = scratch / f"sizes-{each}"
        subprocess.run([sys.executable, HERE / "generate.py", "--ranks", "8", "--megabytes", str(each), "--output", folder], check=True)
        add("Kineto JSON, 8 ranks", folder, size_of(folder))
        shutil.rmtree(folder)
    if options.nsys is not None:
        small = scratch / "small.sqlite"
        subprocess.run([sys.executable, HERE / "replicate_nsys.py", options.nsys, small, "--rows", "20000"], check=True)
        add("SQLite export of Nsight Systems", small, small.stat().st_size / 1e6)
    return lines + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/sidestream-trace")
    parser.add_argument("--peer-python", type=pathlib.Path, help="a Python that has the peers; else one is made")
    parser.add_argument("--tracelens", type=pathlib.Path, help="a Python that has TraceLens; without it that is left out")
    parser.add_argument("--traces", type=pathlib.Path, help="folder that generate.py made; else one is made")
    parser.add_argument("--nsys", type=pathlib.Path, help="small SQLite export with kernels; without it nsys is left out")
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the replicated export")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, help="a Markdown file")
    options = parser.parse_args()
    for name in ("program", "peer_python", "tracelens", "traces", "nsys"):
        place = getattr(options, name)  # not resolved: a virtual environment's Python is a link
        setattr(options, name, place and place.absolute())
    python = options.peer_python or own_environment.python_with(ROOT / "tests/reference/readers.txt", HERE / "peers.txt")
    with tempfile.TemporaryDirectory() as name:
        lines = compare_kineto(options, python, pathlib.Path(name))
        lines += own_sizes(options, pathlib.Path(name))
        if options.nsys is not None:
            for devices in (1, 8):
                lines += compare_nsys(options, python, pathlib.Path(name), devices)
    text = "\n".join(lines)
    print(text)
    if options.output is not None:
        kept.keep(options.output, f"# sidestream-trace beside its peers\n\n{machine.today_here()}. Command: `python tests/bench/trace/versus_peers.py`.\n\n{text}")


if __name__ == "__main__":
    main()
