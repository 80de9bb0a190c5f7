"""All-reduce of 64 MB between hosts that slow cables join: ours, Open MPI's and Gloo's, interleaved, against the ring limit.

    build/env/bin/python tests/bench/allreduce/over_a_link.py [--hosts 2 4] [--ranks-per-host 1] [--dtype fp32] [--rate 1gbit]
        [--repeats 3] [--output FILE]

The hosts are network namespaces of this machine. The ring limit: every host sends (and receives) 2 (n - 1) / n of the
buffer at the rate of its cable; the rate counts the headers of every packet, some 5 % at 1500 bytes. Ranks of a host share
its cable: none can do with less than what n hosts do that add up their own ranks first, as ours do, each rank then
exchanging its slice. The buffer has as many bytes in bf16, of half the size each. MPI has no bf16: its sum there is a user's
operation, with our loop in it. A sample is the slowest rank's time. A figure is the median over rounds of a round's median,
with the range of the rounds. Needs root and iproute2.
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


def limit_s(hosts, rate):
    """However many ranks a host has and whatever the type: the buffer's bytes and the cable decide."""
    return 2 * (hosts - 1) / hosts * BYTES / cables.bytes_per_s(rate)


def gloo_rank(repeats, dtype):
    """One process of the Gloo side, started by mpirun: rank 0 prints 'gloo <bytes> <us>' lines."""
    import torch
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = cables.own_interface()
    rank, ranks = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=cables.RENDEZVOUS, rank=rank, world_size=ranks)
    values = torch.zeros(BYTES // 2, dtype=torch.bfloat16) if dtype == "bf16" else torch.zeros(BYTES // 4)
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
    output = cables.run_on_hosts([options.ranks_per_host] * hosts, options.rate, words)
    return [line.split() for line in output.splitlines() if line and not line.startswith("#")]


def one_round(options, hosts):
    """Each side's median, in seconds."""
    lines = lines_of(options, hosts, [options.build / "tests/bench/bench_allreduce", options.repeats, "--samples", "--only",
                                      1024 * MEGABYTES, *(["--bf16"] if options.dtype == "bf16" else [])])
    lines += lines_of(options, hosts, [sys.executable, __file__, "--gloo", "--repeats", options.repeats, "--dtype", options.dtype])
    samples = collections.defaultdict(list)
    for name, _, us in lines:
        samples[name].append(float(us) * 1e-6)
    return {name: statistics.median(seconds) for name, seconds in samples.items()}


def row(options, hosts):
    rounds = [one_round(options, hosts) for _ in range(options.rounds)]
    limit = limit_s(hosts, options.rate)
    cells = []
    for name in ("ours", "openmpi", "gloo"):
        seconds = [one[name] for one in rounds]
        cells.append(f"{interval(seconds, '{:.3f}')} s, {interval([100 * limit / one for one in seconds], '{:.0f}', ' %')}")
    return f"| {hosts} | {limit:.3f} s | " + " | ".join(cells) + " |"


def head(options):
    """What stands above the rows."""
    ranks = "one rank a host" if options.ranks_per_host == 1 else f"{options.ranks_per_host} ranks a host, which share its cable"
    lines = [f"# All-reduce of {MEGABYTES} MiB, {options.dtype}, over cables of {options.rate}", "",
             f"{machine.today_here()} for all hosts together, {ranks}. Medians of {options.rounds} interleaved rounds of "
             f"{options.repeats} samples, with the range of the rounds; in percent: share of the ring limit.",
             f"Command: `{shlex.join(['python', 'tests/bench/allreduce/over_a_link.py', *sys.argv[1:]])}`"]
    if options.dtype == "bf16":
        lines.append("MPI has no bf16: its sum there is a user's operation with our vectorised loop in it.")
    return [*lines, "", "| hosts | ring limit | ours | Open MPI | Gloo |", "|--:|--:|--:|--:|--:|"]


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--repeats", type=int, default=3, help="samples a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--gloo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if min(options.hosts) < 2 or options.ranks_per_host < 1:
        parser.error("a cable needs two hosts, and a host a rank")
    return options


def main():
    options = parse(sys.argv[1:])
    if options.gloo:
        return gloo_rank(options.repeats, options.dtype)
    lines = head(options)
    for hosts in options.hosts:
        lines.append(row(options, hosts))
        print(lines[-1], flush=True)
    if options.output:
        kept.keep(options.output, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
