#!/usr/bin/env python3
"""All-reduce on ranks of one host: ours, Open MPI's and Gloo's, interleaved, as a table of medians.

    build/env/bin/python tests/bench/allreduce/allreduce.py --bench build/release/tests/bench/bench_allreduce \
        [--dtype fp32] [--ranks 2 4] [--rounds 5] [--repeats 5] [--results tests/bench/results/allreduce.md]

A round runs the C++ program (ours and Open MPI, interleaved in it) and then Gloo through torch.distributed, so that a
change of the machine's speed meets all three. A sample is the slowest rank's time. A figure is the median over rounds of
a round's median, with the range of the rounds; a ratio the median and the range of the rounds' own. Needs torch for Gloo.
MPI has no bf16: with --dtype bf16 its sum is a user's operation, with our loop in it.
"""

import argparse
import collections
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
from spread import interval, ratios  # noqa: E402

SIZES_KIB = (4, 64, 1024, 4 * 1024, 25 * 1024, 64 * 1024)  # as bench_allreduce.cpp
KIB = 1 << 10


def gloo_rank(rank, ranks, store, repeats, dtype):
    """One process of the Gloo side: prints 'gloo <bytes> <us>' lines on rank 0."""
    import time

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    for kib in SIZES_KIB:
        values = torch.zeros(kib * KIB // 2, dtype=torch.bfloat16) if dtype == "bf16" else torch.zeros(kib * KIB // 4)
        for i in range(-3, repeats):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(values)
            slowest = torch.tensor([1e6 * (time.perf_counter() - begin)])
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            if i >= 0 and rank == 0:
                print(f"gloo {kib * KIB} {slowest.item():.1f}")
    dist.destroy_process_group()


def run_gloo(ranks, repeats, dtype):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--gloo-store", os.path.join(folder, "store"), "--repeats", str(repeats), "--ranks",
                   str(ranks), "--dtype", dtype]
        processes = [subprocess.Popen(command + ["--gloo-rank", str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
        outputs = [process.communicate()[0] for process in processes]
        if any(process.returncode for process in processes):
            sys.exit("Gloo failed")
        return outputs[0]


def run_ours(bench, ranks, repeats, dtype):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none", bench, str(repeats), "--samples"]
    command += ["--bf16"] if dtype == "bf16" else []
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def medians(output):
    """Of one round, in microseconds, by name and bytes."""
    samples = collections.defaultdict(list)
    for line in output.splitlines():
        if line.startswith("#"):
            continue
        name, size, us = line.split()
        samples[name, int(size)].append(float(us))
    return {case: statistics.median(values) for case, values in samples.items()}


def table(rounds):
    lines = [
        "| KiB | ours, us | Open MPI, us | Gloo, us | faster of the two / ours |",
        "|---:|---:|---:|---:|---:|",
    ]
    for kib in SIZES_KIB:
        ours, mpi, gloo = ([one[name, kib * KIB] for one in rounds] for name in ("ours", "openmpi", "gloo"))
        cells = [interval(side, "{:.0f}") for side in (ours, mpi, gloo)]
        lines.append(f"| {kib} | {' | '.join(cells)} | {interval(ratios(map(min, mpi, gloo), ours), '{:.1f}')} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", help="the program bench_allreduce")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="samples a round and size")
    parser.add_argument("--results", type=pathlib.Path, help="write the table to this file too")
    parser.add_argument("--gloo-rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--gloo-store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gloo_rank is not None:
        return gloo_rank(options.gloo_rank, options.ranks[0], options.gloo_store, options.repeats, options.dtype)
    if not options.bench:
        parser.error("--bench is needed")

    texts = []
    for ranks in options.ranks:
        rounds = [medians(run_ours(options.bench, ranks, options.repeats, options.dtype) + run_gloo(ranks, options.repeats, options.dtype))
                  for _ in range(options.rounds)]
        texts.append(f"{ranks} ranks:\n\n{table(rounds)}")
        print(texts[-1], flush=True)
    if options.results:
        text = "\n\n".join(texts)
        kept.keep(
            options.results,
            f"# All-reduce, {options.dtype}, ranks of one host\n\n"
            f"{machine.today_here()}. Medians of {options.rounds} interleaved rounds, with their range; {options.repeats} samples a "
            "round and size, a sample is the slowest rank's time.\n"
            f"Command: `{shlex.join(['python'] + sys.argv)}`\n\n{text}\n",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
