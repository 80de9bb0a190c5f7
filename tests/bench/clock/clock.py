"""How well the clocks of ranks are brought together: two ranks on one host, and on two that a slow cable joins.

    python tests/bench/clock/clock.py [--repeats 5] [--rate 1gbit] [--output FILE]

The two hosts are network namespaces of this machine with a boot id each: the program takes their clocks for two and
estimates an offset, and the right answer, 0, is known. Needs root and iproute2 for the second row.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402


def train(program, folder):
    return [program, "train", "--run-dir", folder, "--data", "synthetic", "--device", "cpu", "--model", "gpt2-tiny", "--steps", "14",
            "--eval-every", "0", "--profile", "wait=3,warmup=1,active=8,repeat=1"]


def run(command, variables):
    done = subprocess.run([str(word) for word in command], env=os.environ | variables, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}\nended with {done.returncode}\n{done.stdout}")


def one_host(options, folder):
    run([ROOT / "launch/run", "-np", "2", "--build", options.build, "--", *train(options.build / "sidestream", folder)[1:]], {})


def two_hosts(options, folder):
    run(["bash", ROOT / "tests/comm/run_in_namespaces.sh", shutil.which("mpirun"), "1", "1",
         *train(options.build / "sidestream", folder)], {"SIDESTREAM_LINK_RATE": options.rate})


def measured(start, options):
    """The columns of the table, in us, of one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = f"{name}/run"
        start(options, folder)
        run([options.build / "sidestream-trace", "report", folder, "--quiet", "--json", f"{name}/report.json"], {})
        clock = json.loads(pathlib.Path(f"{name}/report.json").read_text())["clock"]
        samples = json.loads(next(pathlib.Path(folder).rglob("clock.json")).read_text())["ranks"][1]
    return {"method": clock["method"], "error": abs(clock["offset_us"][1]), "uncertainty": clock["offset_uncertainty_us"][1],
            "sample p50": samples.get("residual_us_p50"), "sample p95": samples.get("residual_us_p95"),
            "ends p50": clock["residual_us_p50"], "ends p95": clock["residual_us_p95"]}


def row(title, runs):
    method = runs[0]["method"]
    cells = []
    for column in list(runs[0])[1:]:
        values = [one[column] for one in runs if one[column] is not None]
        cells.append(f"{statistics.median(values):.1f}" if values else "")
    return f"| {title} | {method} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", default="1gbit", help="of the cable between the two hosts")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    places = {"one host": one_host, f"two hosts, {options.rate}": two_hosts}
    runs = {title: [] for title in places}
    for _ in range(options.repeats):
        for title, start in places.items():
            runs[title].append(measured(start, options))
    lines = ["# Clocks of ranks", "",
             f"{machine.today_here()}; medians of {options.repeats} runs, microseconds. "
             f"Command: `python tests/bench/clock/clock.py --repeats {options.repeats} --rate {options.rate}`.", "",
             "| | method | error of the offset | published uncertainty | samples off by, p50 | p95 | ends of collectives apart, p50 "
             "| p95 |", "|---|---|--:|--:|--:|--:|--:|--:|",
             *[row(title, of_place) for title, of_place in runs.items()], "",
             "Ends of host collectives lie as far apart as the scheduler lets ranks wait, and, over the cable, as the last part "
             "travels: they bound the clock, they do not measure it.", ""]
    print("\n".join(lines))
    if options.output is not None:
        kept.keep(options.output, "\n".join(lines))


if __name__ == "__main__":
    main()
