"""Sidestream against PyTorch DDP on Gloo, side by side on CPU ranks: tokens per second and memory.

    build/env/bin/python tests/bench/ddp/versus_ddp.py [--repeats 3] [--only gpt2-mini-bf16] [--output FILE]

Both sides run in turn, each repeat is one pair; figures are medians over repeats of the median step. Memory is the peak
of the proportional set sizes of all ranks, added, read from outside for both alike.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
CASES = {
    "gpt2-mini-fp32": dict(model="gpt2-mini", vocab=512, batch=16, length=256, precision="fp32", steps=6),
    "gpt2-mini-bf16": dict(model="gpt2-mini", vocab=512, batch=16, length=256, precision="bf16", steps=8),
    "gpt2-124m-fp32": dict(model="gpt2-124m", vocab=50257, batch=4, length=64, precision="fp32", steps=5),
    "gpt2-124m-bf16": dict(model="gpt2-124m", vocab=50257, batch=4, length=64, precision="bf16", steps=5),
}
WARMUP = 3


def descendants(pid):
    found = [pid]
    for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
        found += descendants(int(child))
    return found


def pss_bytes(pid):
    try:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run_measured(command, ranks_of):
    """Runs a command; returns its output and the peak of the summed PSS of the processes that ranks_of picks."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    process = subprocess.Popen([str(word) for word in command], env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    peak = 0

    def watch():
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(pss_bytes(pid) for pid in ranks_of(descendants(process.pid))))
            time.sleep(0.5)

    watcher = threading.Thread(target=watch)
    watcher.start()
    output = process.communicate()[0]
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"exit code {process.returncode} from {' '.join(map(str, command))}\n{output}")
    return output, peak


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def run_ours(case, ranks, flags):
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "launch/run", "-np", ranks, "--", "train", "--run-dir", f"{folder}/run", "--data", "synthetic", "--device", "cpu",
                   "--model", case["model"], "--vocab-size", case["vocab"], "--sequence-length", case["length"],
                   "--batch-size-per-rank", case["batch"], "--steps", WARMUP + case["steps"], "--precision",
                   case["precision"], "--eval-every", 0, "--keep-checkpoints", 1, *flags]
        program = str(ROOT / "build/release/sidestream")
        _, peak = run_measured(command, lambda pids: [p for p in pids if command_line(p)[0] == program])
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
    step_s = statistics.median(line["batch_cost_s"] for line in lines[WARMUP:])
    return ranks * case["batch"] * case["length"] / step_s, peak


def run_peer(case, ranks):
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "build/env/bin/python", ROOT / "tests/bench/ddp/peer.py", "--model", case["model"], "--vocab-size",
                   case["vocab"], "--batch-size", case["batch"], "--sequence-length", case["length"], "--steps",
                   case["steps"], "--warmup", WARMUP, "--precision", case["precision"], "--ranks", ranks, "--rendezvous",
                   f"{folder}/rendezvous"]
        output, peak = run_measured(command, lambda pids: [p for p in pids if "spawn_main" in " ".join(command_line(p))])
    step_s = statistics.median(json.loads(output.splitlines()[-1])["step_s"])
    return ranks * case["batch"] * case["length"] / step_s, peak


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=CASES, nargs="*")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--flags", default="", help="further flags of our side, in one string")
    args = parser.parse_args()
    lines = [f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, {args.ranks} ranks, medians of "
             f"{args.repeats} interleaved repeats.", f"Command: `python tests/bench/ddp/versus_ddp.py --repeats {args.repeats}`", "",
             "| case | Sidestream tok/s | PyTorch DDP tok/s | ratio | Sidestream memory | DDP memory | ratio |",
             "|---|--:|--:|--:|--:|--:|--:|"]
    for name in args.only or CASES:
        ours, peer = [], []
        for _ in range(args.repeats):
            ours.append(run_ours(CASES[name], args.ranks, args.flags.split()))
            peer.append(run_peer(CASES[name], args.ranks))
            print(name, ours[-1], peer[-1], file=sys.stderr, flush=True)
        speed = [statistics.median(side[0] for side in sides) for sides in (ours, peer)]
        ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, peer))
        memory = [statistics.median(side[1] for side in sides) / 2**20 for sides in (ours, peer)]
        lines.append(f"| {name} | {speed[0]:.0f} | {speed[1]:.0f} | {ratio:.2f}x | {memory[0]:.0f} MiB | {memory[1]:.0f} MiB | "
                     f"{memory[0] / memory[1]:.2f} |")
        print(lines[-1], flush=True)
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
