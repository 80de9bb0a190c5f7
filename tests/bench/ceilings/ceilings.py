"""`sidestream bench ceilings` against measurements that share no code with it: PyTorch's matrix products, and copies by numpy.

    build/env/bin/python tests/bench/ceilings/ceilings.py [--repeats N] [--output tests/bench/results/ceilings.md]

Both sides in turns, the best of each counts, because a ceiling is what was reached once. A ceiling has to be no lower than what
anybody reaches, less 10 %; that it is higher is the point of our own products, so it is said and no fault.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/reference"))
from machine import processor  # noqa: E402
BINARY = ROOT / "build/release/sidestream"
SECONDS, ALLOWED = 2.0, 0.1
ROWS, INNER, COLUMNS = 2048, 1536, 1536
COPIED_BYTES = 256 << 20


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


def copy_rate():
    """STREAM's copy, a thread for each core: numpy releases the interpreter while it copies."""
    from concurrent.futures import ThreadPoolExecutor
    cores = len(os.sched_getaffinity(0))
    parts = [(numpy.ones(COPIED_BYTES // 4 // cores, dtype=numpy.float32), numpy.empty(COPIED_BYTES // 4 // cores, dtype=numpy.float32))
             for _ in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        return best_rate(2.0 * sum(source.nbytes for source, _ in parts),
                         lambda: list(pool.map(lambda part: numpy.copyto(part[1], part[0]), parts)))


def independent():
    with torch.no_grad():
        return {"fp32_flops_per_s": product_rate(torch.float32), "bf16_flops_per_s": product_rate(torch.bfloat16),
                "memory_bytes_per_s": copy_rate()}


def ours(folder):
    env = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    subprocess.run([BINARY, "bench", "ceilings", "--seconds", str(SECONDS)], env=env, check=True, stdout=subprocess.DEVNULL)
    machines = json.loads((folder / "sidestream/ceilings.json").read_text())["machines"]
    return next(iter(machines.values()))


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
    rows, good = [], True
    for figure, sides in best.items():
        if "independent" not in sides:
            continue
        ratio = sides["ours"] / sides["independent"]
        good = good and ratio >= 1 - ALLOWED
        rows.append(f"| {figure} | {sides['ours'] * 1e-9:.1f} | {sides['independent'] * 1e-9:.1f} | {ratio:.2f} |")
    text = (f"# Ceilings against independent measurements\n\n{datetime.date.today()}, {len(os.sched_getaffinity(0))} cores of {processor()}; "
            f"best of {wanted.repeats} measurements of {SECONDS:g} s, in turns. PyTorch {torch.__version__}: `torch.mm`; numpy: `copyto`.\n\n"
            "| figure | `bench ceilings`, G/s | independent, G/s | ratio |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n")
    print(text)
    if wanted.output:
        wanted.output.write_text(text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
