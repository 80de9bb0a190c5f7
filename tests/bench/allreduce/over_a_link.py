"""All-reduce of 64 MB between hosts that slow cables join: ours, Open MPI's and Gloo's, interleaved, against the ring limit.

    build/env/bin/python tests/bench/allreduce/over_a_link.py [--hosts 2 4] [--rate 1gbit] [--repeats 3] [--output FILE]

The hosts are network namespaces of this machine with one rank each. The ring limit: every rank sends (and receives)
2 (n - 1) / n of the buffer at the rate of its cable; the rate counts the headers of every packet, some 5 % at 1500
bytes. A sample is the slowest rank's time. Needs root and iproute2.
"""
import argparse
import collections
import datetime
import fcntl
import os
import pathlib
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
MEGABYTES = 64
BYTES = MEGABYTES << 20
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def interface_of_the_cable():
    """The interface of this namespace that has an address of run_in_namespaces.sh; Gloo wants its name."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _, name in socket.if_nameindex():
        try:
            address = fcntl.ioctl(probe, 0x8915, struct.pack("256s", name.encode()))[20:24]  # SIOCGIFADDR
        except OSError:
            continue
        if socket.inet_ntoa(address).startswith("10.231."):
            return name
    sys.exit("no interface of run_in_namespaces.sh")


def gloo_rank(repeats):
    """One process of the Gloo side, started by mpirun: rank 0 prints 'gloo <bytes> <us>' lines."""
    import torch
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = interface_of_the_cable()
    rank, ranks = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="tcp://10.231.0.1:29517", rank=rank, world_size=ranks)
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


def on_hosts(options, hosts, words):
    command = ["bash", ROOT / "tests/comm/run_in_namespaces.sh", shutil.which("mpirun"), *["1"] * hosts, *words]
    done = subprocess.run([str(word) for word in command], env=os.environ | {"SIDESTREAM_LINK_RATE": options.rate},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{words}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return [line.split() for line in done.stdout.splitlines() if line and not line.startswith("#")]


def row(options, hosts):
    samples = collections.defaultdict(list)
    for _ in range(options.rounds):
        lines = on_hosts(options, hosts, [options.build / "tests/bench/bench_allreduce", options.repeats, "--samples", "--only", MEGABYTES])
        lines += on_hosts(options, hosts, [sys.executable, __file__, "--gloo", "--repeats", options.repeats])
        for name, _, us in lines:
            samples[name].append(float(us) * 1e-6)
    limit_s = 2 * (hosts - 1) / hosts * BYTES * 8 / (float(options.rate[:-4]) * UNITS[options.rate[-4:]])
    cells = [f"{statistics.median(samples[name]):.3f} s, {100 * limit_s / statistics.median(samples[name]):.0f} %"
             for name in ("ours", "openmpi", "gloo")]
    return f"| {hosts} | {limit_s:.3f} s | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--repeats", type=int, default=3, help="samples a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--gloo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gloo:
        return gloo_rank(options.repeats)
    model = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    lines = [f"# All-reduce of {MEGABYTES} MiB, fp32, over cables of {options.rate}", "",
             f"{datetime.date.today()}, {model}, {os.cpu_count()} cores for all hosts together, one rank a host. Medians of "
             f"{options.rounds * options.repeats} samples, interleaved; in percent: share of the ring limit.",
             f"Command: `python tests/bench/allreduce/over_a_link.py --rate {options.rate}`", "",
             "| hosts | ring limit | ours | Open MPI | Gloo |", "|--:|--:|--:|--:|--:|"]
    for hosts in options.hosts:
        lines.append(row(options, hosts))
        print(lines[-1], flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
