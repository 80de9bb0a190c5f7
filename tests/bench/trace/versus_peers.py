"""`sidestream-trace report` against HolisticTraceAnalysis 0.5.0 and nsys-ai 0.3.0, interleaved, on generated input.

    python tests/bench/trace/versus_peers.py --program build/release/sidestream-trace --peer-python VENV/bin/python

The peers live in an environment of their own (pip install holistictraceanalysis==0.5.0 'pandas<3' nsys-ai==0.3.0).
Prints wall and processor seconds, peak memory of the whole process tree's largest process, and MB/s.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def measured(command):
    """Wall seconds, processor seconds, peak MB of the largest process."""
    code = ("import resource,subprocess,sys,time;t=time.perf_counter();"
            "r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL).returncode;"
            "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
            "print(r,time.perf_counter()-t,u.ru_utime+u.ru_stime,u.ru_maxrss/1024)")
    output = subprocess.run([sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, check=True)
    code, wall, processor, memory = map(float, output.stdout.split())
    if code != 0:
        raise SystemExit(f"{command[0]} failed with {code:.0f}")
    return wall, processor, memory


def compare(ours, theirs, megabytes, repeats):
    results = {"ours": [], "theirs": []}
    for _ in range(repeats):
        results["ours"].append(measured(ours))
        results["theirs"].append(measured(theirs))
    medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in results.items()}
    for name, (wall, processor, memory) in medians.items():
        print(f"  {name:<7} {wall:8.2f} s wall {processor:8.2f} s processor {memory:8.0f} MB {megabytes / wall:8.0f} MB/s")
    ratios = [theirs / ours for ours, theirs in zip(medians["ours"], medians["theirs"])]
    print(f"  theirs / ours: wall {ratios[0]:.1f}, processor {ratios[1]:.1f}, memory {ratios[2]:.1f}")


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--peer-python", type=pathlib.Path, required=True)
    parser.add_argument("--traces", type=pathlib.Path, help="folder that generate.py made; else one is made")
    parser.add_argument("--nsys", type=pathlib.Path, help="SQLite export that replicate_nsys.py made; else left out")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        traces = options.traces or pathlib.Path(scratch) / "traces"
        if options.traces is None:
            subprocess.run([sys.executable, HERE / "generate.py", "--ranks", str(options.ranks), "--megabytes",
                            str(options.megabytes), "--output", traces], check=True)
        print(f"Kineto, {size_of(traces):.0f} MB; theirs: HTA 0.5.0, load + overlap + temporal breakdown")
        compare([options.program, "report", traces], [options.peer_python, HERE / "hta_breakdown.py", traces],
                size_of(traces), options.repeats)
        if options.nsys is not None:
            megabytes = options.nsys.stat().st_size / 1e6
            print(f"nsys SQLite, {megabytes:.0f} MB; theirs: nsys-ai 0.3.0 diagnose")
            compare([options.program, "report", options.nsys],
                    [options.peer_python.parent / "nsys-ai", "diagnose", options.nsys], megabytes, options.repeats)


if __name__ == "__main__":
    main()
