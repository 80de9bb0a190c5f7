"""Sidestream against PyTorch DDP on Gloo, eager and with torch.compile, side by side on CPU ranks: tokens per second and
memory.

    build/env/bin/python tests/bench/ddp/versus_ddp.py [--repeats 3] [--only gpt2-mini-bf16] [--output FILE]

The sides run in turn, each repeat is one round; figures are medians over repeats of the median step, ratios the median
and the range of the rounds' own ratios, against the better of the two peers. Memory is the peak of the proportional set
sizes of all ranks, added, read from outside for all alike. --eager-only leaves torch.compile out.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
import training  # noqa: E402
from spread import interval, ratios  # noqa: E402


def run_peer(case, ranks, flags=()):
    with tempfile.TemporaryDirectory() as folder:
        command = [ROOT / "build/env/bin/python", ROOT / "tests/bench/ddp/peer.py", "--model", case["model"], "--vocab-size",
                   case["vocab"], "--batch-size", case["batch"], "--sequence-length", case["length"], "--steps",
                   case["steps"], "--warmup", training.WARMUP, "--precision", case["precision"], "--ranks", ranks, "--rendezvous",
                   f"file://{folder}/rendezvous", *flags]
        output, peak = training.run_measured(command, lambda words: "spawn_main" in " ".join(words))
    step_s = statistics.median(json.loads(output.splitlines()[-1])["step_s"])
    return ranks * case["batch"] * case["length"] / step_s, peak


def row(name, ours, peers):
    """A line of the table; ours and each peer: (tokens/s, bytes) by round."""
    speed = {peer: statistics.median(tokens for tokens, _ in rounds) for peer, rounds in peers.items()}
    better = peers[max(speed, key=speed.get)]
    memory = [statistics.median(used for _, used in side) / 2**20 for side in (ours, peers["eager"])]
    speeds = [interval([tokens for tokens, _ in side], "{:.0f}") for side in (ours, *peers.values())]
    against = interval(ratios([tokens for tokens, _ in ours], [tokens for tokens, _ in better]), unit="x")
    return f"| {name} | {' | '.join(speeds)} | {against} | {memory[0]:.0f} MiB | {memory[1]:.0f} MiB | {memory[0] / memory[1]:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=training.CASES, nargs="*")
    parser.add_argument("--eager-only", action="store_true", help="without torch.compile, which compiles for minutes")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--flags", default="", help="further flags of our side, in one string")
    args = parser.parse_args()
    flags_of_peers = {"eager": []} if args.eager_only else {"eager": [], "compiled": ["--compile"]}
    titles = {"eager": "PyTorch DDP tok/s", "compiled": "with torch.compile tok/s"}
    lines = [f"{machine.today_here()}, {args.ranks} ranks, medians of {args.repeats} interleaved repeats, with their range.",
             f"Command: `python tests/bench/ddp/versus_ddp.py {' '.join(sys.argv[1:])}`", "",
             f"| case | Sidestream tok/s | {' | '.join(titles[peer] for peer in flags_of_peers)} | against the better | "
             "Sidestream memory | DDP memory, eager | ratio |", "|---|" + "--:|" * (5 + len(flags_of_peers))]
    for name in args.only or training.CASES:
        ours, peers = [], {peer: [] for peer in flags_of_peers}
        for _ in range(args.repeats):
            ours.append(training.run_case(training.CASES[name], args.ranks, args.flags.split()))
            for peer, flags in flags_of_peers.items():
                peers[peer].append(run_peer(training.CASES[name], args.ranks, flags))
            print(name, ours[-1], {peer: rounds[-1] for peer, rounds in peers.items()}, file=sys.stderr, flush=True)
        lines.append(row(name, ours, peers))
        print(lines[-1], flush=True)
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
