"""Sidestream against llm.c's CPU program, GPT-2 124M with four sequences of 64 tokens a step on all cores.

    build/env/bin/python tests/bench/llmc/versus_llmc.py --llmc DIR [--repeats 3] [--output FILE]

DIR holds `train_gpt2`, built from https://github.com/karpathy/llm.c as its README says (with OpenMP). It gets a model of
random weights and random tokens, in its own formats; sequences, their length and the model are fixed in its source. Our
side is one rank a core, which share the four sequences. The sides run in turn, each repeat is one round; a figure is the
median over rounds of the median step, a ratio the median of the rounds' own, each with the range of the rounds.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402
import training  # noqa: E402
from formats import header, write_random_tokens  # noqa: E402
from spread import interval, ratios  # noqa: E402

LAYERS, WIDTH, VOCABULARY, PADDED, CONTEXT = 12, 768, 50257, 50304, 1024
BATCH, LENGTH = 4, 64
WARMUP = 2
MODEL_MAGIC, MODEL_VERSION = 20240326, 3
STEP = re.compile(r"step (\d+): train loss (\S+) \(took (\S+) ms\)")


def parameter_tensors():
    """Number of elements and value of each tensor, in the file's order; None: random."""
    c, layers = WIDTH, LAYERS
    return [(PADDED * c, None), (CONTEXT * c, None), (layers * c, 1), (layers * c, 0), (layers * 3 * c * c, None),
            (layers * 3 * c, 0), (layers * c * c, None), (layers * c, 0), (layers * c, 1), (layers * c, 0),
            (layers * 4 * c * c, None), (layers * 4 * c, 0), (layers * 4 * c * c, None), (layers * c, 0), (c, 1), (c, 0)]


def write_inputs(folder):
    random = numpy.random.default_rng(1)
    with open(folder / "gpt2_124M.bin", "wb") as file:
        file.write(header(MODEL_MAGIC, MODEL_VERSION, CONTEXT, VOCABULARY, LAYERS, LAYERS, WIDTH, PADDED))
        for elements, value in parameter_tensors():
            drawn = 0.02 * random.standard_normal(elements, dtype=numpy.float32)
            (drawn if value is None else numpy.full(elements, value, dtype=numpy.float32)).tofile(file)
    data = folder / "dev/data/tinyshakespeare"
    data.mkdir(parents=True)
    for split in ("train", "val"):
        write_random_tokens(data / f"tiny_shakespeare_{split}.bin", 50 * BATCH * LENGTH + 1, VOCABULARY, random)


def run_peer(program, folder, steps):
    """Tokens per second of the program that is ended after its steps; it has no option for their number."""
    process = subprocess.Popen(["stdbuf", "-oL", program], cwd=folder, text=True, stdout=subprocess.PIPE)
    times = []
    for line in process.stdout:
        if step := STEP.match(line):
            times.append(float(step[3]) / 1e3)
        if len(times) == WARMUP + steps:
            break
    process.kill()
    process.wait()
    if len(times) < WARMUP + steps:
        sys.exit(f"{program} ended after {len(times)} steps")
    return BATCH * LENGTH / statistics.median(times[WARMUP:])


def run_ours(precision, ranks, steps):
    step_s, _ = training.timed(ranks, WARMUP, steps, training.shape_flags("gpt2-124m", VOCABULARY, LENGTH, BATCH // ranks, precision))
    return BATCH * LENGTH / step_s


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmc", type=pathlib.Path, required=True, help="folder of llm.c, with train_gpt2 built")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    program = (args.llmc / "train_gpt2").resolve()
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not there: build llm.c as its README says (make train_gpt2)")
    ranks = max(count for count in (1, 2, 4) if count <= os.cpu_count())
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(pathlib.Path(folder))
        for _ in range(args.repeats):
            one = {"llm.c": run_peer(program, folder, args.steps)}
            one.update({precision: run_ours(precision, ranks, args.steps) for precision in ("fp32", "bf16")})
            rounds.append(one)
            print(one, file=sys.stderr, flush=True)
    lines = [f"{machine.today_here()}, {ranks} ranks of ours, medians of {args.repeats} interleaved repeats, with their range.",
             "Command: `python tests/bench/llmc/versus_llmc.py --llmc DIR`", "",
             "| GPT-2 124M, B = 4, T = 64 | tok/s | against llm.c |", "|---|--:|--:|",
             f"| llm.c, fp32 | {interval((one['llm.c'] for one in rounds), '{:.1f}')} | |"]
    theirs = [one["llm.c"] for one in rounds]
    for precision in ("fp32", "bf16"):
        ours = [one[precision] for one in rounds]
        lines.append(f"| Sidestream, {precision} | {interval(ours, '{:.0f}')} | {interval(ratios(ours, theirs), '{:.1f}', 'x')} |")
    print("\n".join(lines))
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
