"""llm.c's CUDA program, train_gpt2cu, as a peer: its command line, its input, and what it prints."""
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "llmc"))

STEP = re.compile(r"^step +(\d+)/\d+ \|.*?\| +([0-9.]+) ms \|.*?([0-9.]+) tok/s", re.MULTILINE)
MEMORY = re.compile(r"^device memory usage: (\d+) MiB", re.MULTILINE)
ELSEWHERE = "Fell back to cudaMallocManaged"  # the optimizer's state lies in the host's memory: too large a batch


def write_inputs(folder, tokens, vocabulary):
    """Tokens for training and for the validation that cannot be switched off."""
    import numpy

    from formats import write_random_tokens
    random = numpy.random.default_rng(1)
    for split in ("train", "val"):
        write_random_tokens(folder / f"{split}.bin", tokens, vocabulary, random)


def command(program, folder, shape, layers, flags):
    """shape: batch, length, steps. No samples, no checkpoints, one batch of validation before and after."""
    words = [program, "-e", f"d{layers}", "-i", folder / "train.bin", "-j", folder / "val.bin", "-b", shape.batch, "-t", shape.length,
             "-d", shape.batch * shape.length, "-x", shape.steps(), "-v", 1_000_000, "-m", 1, "-s", 0, "-g", 1, "-h", 0, *flags]
    return [str(word) for word in words]


def step_ms(output):
    """The time of every step, in order; events on the device around it."""
    return [float(ms) for _, ms, _ in STEP.findall(output)]


def sample(output, shape):
    """What it reached after the warm-up. Raises ValueError where it printed too few steps."""
    times = step_ms(output)
    if len(times) < shape.steps():
        raise ValueError(f"{len(times)} steps instead of {shape.steps()}")
    median_ms = statistics.median(times[shape.every:])
    used = MEMORY.search(output)
    return {"step_ms": median_ms, "tokens_per_s": shape.batch * shape.length / median_ms * 1e3,
            "memory_bytes": int(used[1]) << 20 if used else None}
