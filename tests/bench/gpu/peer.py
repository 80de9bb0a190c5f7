"""The peer on a GPU: PyTorch, eager or compiled, with the GPT-2 of the CPU comparison, AdamW and clipping.

The host queues step after step, as a careful user's loop does that logs rarely: times are those between the ends of two
steps on the device. Prints one JSON line; with --rounds one for each line of its input, which says how many steps to take.
Attention is PyTorch's own choice of kernel. Out of memory: exit code 8.
"""

import argparse
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ddp"))
from batches import MEMORY_CODE  # noqa: E402
from models import SIZES  # noqa: E402
from peer import Gpt2  # noqa: E402

NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--model", choices=SIZES, default="gpt2-124m")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="bf16")
    parser.add_argument("--optimizer", choices=("fused", "plain"), default="fused")
    parser.add_argument("--compile", nargs="?", const="default", metavar="MODE",
                        help="torch.compile, for example reduce-overhead: with CUDA graphs; warm-up steps include the compilation")
    parser.add_argument("--rounds", action="store_true", help="after the warm-up say ready, then measure at each line of the input")
    parser.add_argument("--pad-vocab", type=int, default=1, help="round the rows of the embedding up to a multiple")
    return parser.parse_args()


class Clock:
    """When steps end: on the device, without waiting for it, or on the processor."""

    def __init__(self, device):
        self.on_gpu = device == "cuda"
        self.ends = []

    def step_has_ended(self):
        if self.on_gpu:
            self.ends.append(torch.cuda.Event(enable_timing=True))
            self.ends[-1].record()
        else:
            self.ends.append(time.perf_counter())

    def step_ms(self):
        pairs = zip(self.ends, self.ends[1:])
        if not self.on_gpu:
            return [1e3 * (end - begin) for begin, end in pairs]
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in pairs]


def network(options):
    size = SIZES[options.model]
    rows = -(-size.vocabulary // options.pad_vocab) * options.pad_vocab
    return Gpt2(size.layers, size.heads, size.width, rows, size.context)


def adamw(net, kind):
    kinds = {"fused": True} if kind == "fused" else {"foreach": False}
    return torch.optim.AdamW(net.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, **kinds)


class Trainer:
    def __init__(self, options):
        self.options = options
        self.net = network(options)
        self.step_net = torch.compile(self.net, mode=options.compile, dynamic=False) if options.compile else self.net
        self.optimizer = adamw(self.net, options.optimizer)
        self.scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
        for _ in range(options.warmup):
            self.step()

    def step(self):
        options = self.options
        tokens = torch.randint(0, SIZES[options.model].vocabulary, (options.batch, options.length + 1))
        if options.compile:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(options.device, dtype=NARROW.get(options.precision), enabled=options.precision in NARROW):
            loss = self.step_net(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        self.scaler.scale(loss).backward()
        if options.precision == "fp16":
            self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def measure(self, steps):
        """Two steps first: the device may have rested."""
        clock = Clock(self.options.device)
        for step in range(steps + 2):
            loss = self.step()
            if step > 0:
                clock.step_has_ended()
        memory = torch.cuda.max_memory_allocated() if self.options.device == "cuda" else 0
        return {"step_ms": clock.step_ms(), "memory_bytes": memory, "loss": loss.item(), "torch": torch.__version__}


def rest(trainer):
    """Leaves the device's memory to others."""
    if trainer.options.device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def serve(trainer):
    rest(trainer)
    print("ready", flush=True)
    for line in sys.stdin:
        found = trainer.measure(int(line))
        rest(trainer)
        print(json.dumps(found), flush=True)


def main():
    options = parse()
    torch.manual_seed(1337)
    torch.set_default_device(options.device)
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    try:
        trainer = Trainer(options)
        serve(trainer) if options.rounds else print(json.dumps(trainer.measure(options.steps)))
    except RuntimeError as error:  # what a compiled step throws wraps the allocator's own
        if "out of memory" not in str(error).lower():
            raise
        print(error, file=sys.stderr)
        sys.exit(MEMORY_CODE)


if __name__ == "__main__":
    main()
