"""All-reduce of 64 MB between hosts that slow cables join: ours, Open MPI's and Gloo's, interleaved, against the ring limit.

    build/env/bin/python tests/bench/allreduce/over_a_link.py [--hosts 2 4] [--rate 1gbit] [--repeats 3] [--output FILE]

The hosts are network namespaces of this machine with one rank each. The ring limit: every rank sends (and receives)
2 (n - 1) / n of the buffer at the rate of its cable; the rate counts the headers of every packet, some 5 % at 1500
bytes. A sample is the slowest rank's time. A figure is the median over rounds of a round's median, with the range of the
rounds. Needs root and iproute2.
"""
import argparse
import collections
import os
import pathlib
import shlex
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import cables  # noqa: E402
import kept  # noqa: E402
import machine  # noqa: E402
from spread import interval  # noqa: E402

MEGABYTES = 64
BYTES = MEGABYTES << 20


def gloo_rank(repeats):
    """One process of the Gloo side, started by mpirun: rank 0 prints 'gloo <bytes> <us>' lines."""
    import torch
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = cables.own_interface()
    rank, ranks = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=cables.RENDEZVOUS, rank=rank, world_size=ranks)
    values = torch.zeros(BYTES // 4)
    for i in range(-1, repeats):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(values)
        slowest = torch.tensor([1e6 * (time.perf_counter() - begin)])
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if i >= 0 and rank == 0:
            print(f"gloo {BYTES} {slowest.item():.1f}", flush=True)
    dist.destroy_process_group()


def lines_of(options, hosts, words):
    output = cables.run_on_hosts([1] * hosts, options.rate, words)
    return [line.split() for line in output.splitlines() if line and not line.startswith("#")]


def one_round(options, hosts):
    """Each side's median, in seconds."""
    lines = lines_of(options, hosts, [options.build / "tests/bench/bench_allreduce", options.repeats, "--samples", "--only",
                                      1024 * MEGABYTES])
    lines += lines_of(options, hosts, [sys.executable, __file__, "--gloo", "--repeats", options.repeats])
    samples = collections.defaultdict(list)
    for name, _, us in lines:
        samples[name].append(float(us) * 1e-6)
    return {name: statistics.median(seconds) for name, seconds in samples.items()}


def row(options, hosts):
    rounds = [one_round(options, hosts) for _ in range(options.rounds)]
    limit_s = 2 * (hosts - 1) / hosts * BYTES / cables.bytes_per_s(options.rate)
    cells = []
    for name in ("ours", "openmpi", "gloo"):
        seconds = [one[name] for one in rounds]
        cells.append(f"{interval(seconds, '{:.3f}')} s, {interval([100 * limit_s / one for one in seconds], '{:.0f}', ' %')}")
    return f"| {hosts} | {limit_s:.3f} s | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--repeats", type=int, default=3, help="samples a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--gloo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gloo:
        return gloo_rank(options.repeats)
    lines = [f"# All-reduce of {MEGABYTES} MiB, fp32, over cables of {options.rate}", "",
             f"{machine.today_here()} for all hosts together, one rank a host. Medians of {options.rounds} interleaved rounds of "
             f"{options.repeats} samples, with the range of the rounds; in percent: share of the ring limit.",
             f"Command: `{shlex.join(['python', 'tests/bench/allreduce/over_a_link.py', *sys.argv[1:]])}`", "",
             "| hosts | ring limit | ours | Open MPI | Gloo |", "|--:|--:|--:|--:|--:|"]
    for hosts in options.hosts:
        lines.append(row(options, hosts))
        print(lines[-1], flush=True)
    if options.output:
        kept.keep(options.output, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
