"""Sidestream against PyTorch DDP on Gloo, eager and with torch.compile, side by side on CPU ranks: tokens per second and
memory.

    build/env/bin/python tests/bench/ddp/versus_ddp.py [--repeats 3] [--only gpt2-mini-bf16] [--output FILE]

The sides run in turn, each repeat is one round; figures are medians over repeats of the median step, ratios the median
and the range of the rounds' own ratios, against the better of the two peers. Memory is the peak of the proportional set
sizes of all ranks, added, read from outside for all alike. --eager-only leaves torch.compile out.
"""

import argparse
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
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import machine  # noqa: E402
import training  # noqa: E402
from process_memory import descendants, proportional_bytes  # noqa: E402

CASES = {
    "gpt2-mini-fp32": dict(model="gpt2-mini", vocab=512, batch=16, length=256, precision="fp32", steps=6),
    "gpt2-mini-bf16": dict(model="gpt2-mini", vocab=512, batch=16, length=256, precision="bf16", steps=8),
    "gpt2-124m-fp32": dict(model="gpt2-124m", vocab=50257, batch=4, length=64, precision="fp32", steps=5),
    "gpt2-124m-bf16": dict(model="gpt2-124m", vocab=50257, batch=4, length=64, precision="bf16", steps=5),
}
WARMUP = 3


def run_measured(command, ranks_of):
    """Runs a command; returns its output and the peak of the summed PSS of the processes that ranks_of picks."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    process = subprocess.Popen([str(word) for word in command], env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    peak = 0

    def watch():
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(proportional_bytes(pid) for pid in ranks_of(descendants(process.pid))))
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
        command = training.command(f"{folder}/run", ranks, [
            "--steps", WARMUP + case["steps"],
            *training.shape_flags(case["model"], case["vocab"], case["length"], case["batch"], case["precision"]), *flags])
        program = str(ROOT / "build/release/sidestream")
        _, peak = run_measured(command, lambda pids: [p for p in pids if command_line(p)[0] == program])
        step_s = training.median_step_s(f"{folder}/run", WARMUP)
    return ranks * case["batch"] * case["length"] / step_s, peak


def run_peer(case, ranks, flags=()):
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "build/env/bin/python", ROOT / "tests/bench/ddp/peer.py", "--model", case["model"], "--vocab-size",
                   case["vocab"], "--batch-size", case["batch"], "--sequence-length", case["length"], "--steps",
                   case["steps"], "--warmup", WARMUP, "--precision", case["precision"], "--ranks", ranks, "--rendezvous",
                   f"file://{folder}/rendezvous", *flags]
        output, peak = run_measured(command, lambda pids: [p for p in pids if "spawn_main" in " ".join(command_line(p))])
    step_s = statistics.median(json.loads(output.splitlines()[-1])["step_s"])
    return ranks * case["batch"] * case["length"] / step_s, peak


def row(name, ours, peers):
    """A line of the table; ours and each peer: (tokens/s, bytes) by round."""
    speed = {peer: statistics.median(tokens for tokens, _ in rounds) for peer, rounds in peers.items()}
    better = peers[max(speed, key=speed.get)]
    ratios = [one[0] / other[0] for one, other in zip(ours, better)]
    memory = [statistics.median(used for _, used in side) / 2**20 for side in (ours, peers["eager"])]
    others = " | ".join(f"{value:.0f}" for value in speed.values())
    return (f"| {name} | {statistics.median(tokens for tokens, _ in ours):.0f} | {others} | {statistics.median(ratios):.2f}x "
            f"({min(ratios):.2f} to {max(ratios):.2f}) | {memory[0]:.0f} MiB | {memory[1]:.0f} MiB | {memory[0] / memory[1]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=CASES, nargs="*")
    parser.add_argument("--eager-only", action="store_true", help="without torch.compile, which compiles for minutes")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--flags", default="", help="further flags of our side, in one string")
    args = parser.parse_args()
    flags_of_peers = {"eager": []} if args.eager_only else {"eager": [], "compiled": ["--compile"]}
    titles = {"eager": "PyTorch DDP tok/s", "compiled": "with torch.compile tok/s"}
    lines = [f"{machine.today_here()}, {args.ranks} ranks, medians of "
             f"{args.repeats} interleaved repeats.", f"Command: `python tests/bench/ddp/versus_ddp.py {' '.join(sys.argv[1:])}`", "",
             f"| case | Sidestream tok/s | {' | '.join(titles[peer] for peer in flags_of_peers)} | against the better | Sidestream memory | "
             "DDP memory, eager | ratio |", "|---|" + "--:|" * (5 + len(flags_of_peers))]
    for name in args.only or CASES:
        ours, peers = [], {peer: [] for peer in flags_of_peers}
        for _ in range(args.repeats):
            ours.append(run_ours(CASES[name], args.ranks, args.flags.split()))
            for peer, flags in flags_of_peers.items():
                peers[peer].append(run_peer(CASES[name], args.ranks, flags))
            print(name, ours[-1], {peer: rounds[-1] for peer, rounds in peers.items()}, file=sys.stderr, flush=True)
        lines.append(row(name, ours, peers))
        print(lines[-1], flush=True)
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
