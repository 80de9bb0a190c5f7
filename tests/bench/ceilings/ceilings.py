"""`sidestream bench ceilings` against measurements that share no code with it: PyTorch's matrix products, and memory moved by numpy.

    build/env/bin/python tests/bench/ceilings/ceilings.py [--repeats N] [--output tests/bench/results/ceilings.md]

Both sides in turns, the best of each counts, because a ceiling is what was reached once. A ceiling has to be no lower than what
anybody reaches, less 10 %; that it is higher is the point of our own products, so it is said and no fault, up to what the
processor can do at all: cores x clock x FLOP of a cycle. What memory moves is no trick of ours: both sides agree within 10 %.
The link is that of two ranks, against a ring of two processes by numpy, which Python makes slower: a lower bound. Buffers beyond the
caches are copied no faster than memory is: the upper one.
"""
import argparse
import datetime
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from multiprocessing import shared_memory

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
from machine import cpuinfo_here, described  # noqa: E402
BINARY = ROOT / "build/release/sidestream"
SECONDS, ALLOWED = 2.0, 0.1
ROWS, INNER, COLUMNS = 2048, 1536, 1536
COPIED_BYTES = 256 << 20
RANKS, LINK_BYTES, PIECE_BYTES, LINK_REPEATS = 2, 64 << 20, 128 << 10, 100
AGREE = {"memory_bytes_per_s"}
IMUL_CYCLES = 3  # from one product to the next that needs it, on every x86 processor since 2008


def best_rate(work, call):
    call()
    best, end = 0.0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        begin = time.perf_counter()
        call()
        best = max(best, work / (time.perf_counter() - begin))
    return best


def product_rate(dtype):
    left, right = torch.randn(ROWS, INNER, dtype=torch.float32).to(dtype), torch.randn(INNER, COLUMNS, dtype=torch.float32).to(dtype)
    result = torch.empty(ROWS, COLUMNS, dtype=dtype)
    return best_rate(2.0 * ROWS * INNER * COLUMNS, lambda: torch.mm(left, right, out=result))


def memory_rate():
    """The faster of STREAM's copy and of a change in place, a thread for each core: numpy releases the interpreter meanwhile."""
    from concurrent.futures import ThreadPoolExecutor
    cores = len(os.sched_getaffinity(0))
    parts = [(numpy.ones(COPIED_BYTES // 4 // cores, dtype=numpy.float32), numpy.empty(COPIED_BYTES // 4 // cores, dtype=numpy.float32))
             for _ in range(cores)]
    moved = 2.0 * sum(source.nbytes for source, _ in parts)
    with ThreadPoolExecutor(cores) as pool:
        return max(best_rate(moved, lambda: list(pool.map(lambda part: numpy.copyto(part[1], part[0]), parts))),
                   best_rate(moved, lambda: list(pool.map(lambda part: numpy.negative(part[0], out=part[0]), parts))))


def ring_rank(rank, names, barrier, rates):
    """One of two ranks: each sums a half of both buffers into both, piece by piece, so that a sum is copied out of the cache."""
    blocks = [shared_memory.SharedMemory(name=name) for name in names]
    halves = [numpy.split(numpy.ndarray(LINK_BYTES // 4, numpy.float32, block.buf), RANKS)[rank] for block in blocks]
    mine, other = (numpy.split(halves[place], LINK_BYTES // RANKS // PIECE_BYTES) for place in (rank, 1 - rank))
    begin, best = time.monotonic(), 0.0
    for _ in range(LINK_REPEATS):
        barrier.wait()
        start = time.perf_counter()
        for own, theirs in zip(mine, other):
            numpy.add(own, theirs, out=own)
            numpy.copyto(theirs, own)
        barrier.wait()
        best = max(best, LINK_BYTES / (time.perf_counter() - start))  # 2 (n - 1) / n of the bytes, n = 2
        if time.monotonic() - begin > 60:
            break
    rates[rank] = best
    del halves, mine, other
    for block in blocks:
        block.close()


def link_rate():
    """Bus bandwidth of an all-reduce between two processes that see each other's memory; the slower rank counts."""
    blocks = [shared_memory.SharedMemory(create=True, size=LINK_BYTES) for _ in range(RANKS)]
    try:
        for block in blocks:
            block.buf[:] = bytes(LINK_BYTES)
        context = multiprocessing.get_context("spawn")
        barrier, rates = context.Barrier(RANKS), context.Array("d", RANKS)
        ranks = [context.Process(target=ring_rank, args=(rank, [block.name for block in blocks], barrier, rates)) for rank in range(RANKS)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        return min(rates)
    finally:
        for block in blocks:
            block.close()
            block.unlink()


def clock_hz():
    """The highest clock: as the system says it, or as a chain of products runs, each after the one before, whichever is higher."""
    said = [int(path.read_text()) * 1e3 for path in pathlib.Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/cpuinfo_max_freq")]
    source = """
#include <stdio.h>
#include <time.h>
int main(void) {
  double best = 0;
  for (int repeat = 0; repeat < 5000; ++repeat) {
    struct timespec begin, end;
    unsigned long sum = 1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < 20000; ++i)
      __asm__ volatile("imul %0,%0; imul %0,%0; imul %0,%0; imul %0,%0; imul %0,%0; imul %0,%0; imul %0,%0; imul %0,%0" : "+r"(sum));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double rate = 16e4 / ((end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec));
    if (rate > best) best = rate;
  }
  printf("%.0f", best);
}
"""
    with tempfile.TemporaryDirectory(prefix="sidestream-clock-") as name:
        program = pathlib.Path(name) / "clock"
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
        measured = float(subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout) * IMUL_CYCLES
    return max([measured, *said])


def flop_of_a_cycle():
    """Of one core, by the widest units that the processor says it has: two fused multiply-adds on vectors, or AMX tiles."""
    flags = set(next(line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split())
    lanes = 16 if "avx512f" in flags else 8 if "avx2" in flags else 4
    fp32 = 2 * 2 * lanes
    bf16 = 1024 if "amx_bf16" in flags else 2 * fp32 if "avx512_bf16" in flags else fp32
    return {"fp32_flops_per_s": fp32, "bf16_flops_per_s": bf16}


def most_possible():
    cores = len(os.sched_getaffinity(0))
    clock = clock_hz()
    return {figure: cores * clock * flop for figure, flop in flop_of_a_cycle().items()}


def independent():
    with torch.no_grad():
        return {"fp32_flops_per_s": product_rate(torch.float32), "bf16_flops_per_s": product_rate(torch.bfloat16),
                "memory_bytes_per_s": memory_rate(), "link_bytes_per_s": link_rate()}


def ours(folder):
    env = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    if os.getuid() == 0:
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = [BINARY, "bench", "ceilings", "--seconds", str(SECONDS)]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["mpirun", "--bind-to", "none", "--oversubscribe", "-np", str(RANKS), *command], env=env, check=True, stdout=subprocess.DEVNULL)
    machine = next(iter(json.loads((folder / "sidestream/ceilings.json").read_text())["machines"].values()))
    return {**machine, "link_bytes_per_s": machine["link_bytes_per_s"][str(RANKS)]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path)
    wanted = parser.parse_args()
    best = {}
    with tempfile.TemporaryDirectory(prefix="sidestream-ceilings-") as name:
        for repeat in range(wanted.repeats):
            for side, measure in (("ours", lambda: ours(pathlib.Path(name))), ("independent", independent)):
                for figure, rate in measure().items():
                    if str(figure).endswith("_per_s") and isinstance(rate, float):
                        best.setdefault(figure, {}).setdefault(side, 0.0)
                        best[figure][side] = max(best[figure][side], rate)
    most = most_possible() | {"link_bytes_per_s": best["memory_bytes_per_s"]["independent"]}
    rows, good = [], True
    for figure, sides in best.items():
        if "independent" not in sides:
            continue
        ratio = sides["ours"] / sides["independent"]
        highest = (1 + ALLOWED) * (sides["independent"] if figure in AGREE else most[figure])
        good = good and ratio >= 1 - ALLOWED and sides["ours"] <= highest
        possible = "–" if figure in AGREE else f"{most[figure] * 1e-9:.1f}"
        rows.append(f"| {figure} | {sides['ours'] * 1e-9:.1f} | {sides['independent'] * 1e-9:.1f} | {ratio:.2f} | {possible} |")
    text = (f"# Ceilings against independent measurements\n\n{datetime.date.today()}, {len(os.sched_getaffinity(0))} cores of {described(cpuinfo_here())}; "
            f"best of {wanted.repeats} measurements of {SECONDS:g} s, in turns. PyTorch {torch.__version__}: `torch.mm`; numpy: `copyto`, `negative`, and a ring of {RANKS} processes.\n\n"
            "| figure | `bench ceilings`, G/s | independent, G/s | ratio | no more than, G/s: cores x clock x FLOP of a cycle; memory |\n| --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n")
    print(text)
    if wanted.output:
        kept.keep(wanted.output, text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
