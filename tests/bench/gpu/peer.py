"""The peer on a GPU: PyTorch eager with the GPT-2 of the CPU comparison, AdamW and clipping.

The host queues step after step, as a careful user's loop does that logs rarely: times are those between the ends of two
steps on the device. Prints one JSON line. Attention is PyTorch's own choice of kernel.
"""

import argparse
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ddp"))
from peer import SIZES, Gpt2  # noqa: E402

NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}
SIZES = {**SIZES, "gpt2-tiny": (4, 4, 128, 512, 128)}


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


def main():
    options = parse()
    torch.manual_seed(1337)
    torch.set_default_device(options.device)
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    layers, heads, width, vocab, context = SIZES[options.model]
    net = Gpt2(layers, heads, width, vocab, context)
    kinds = {"fused": True} if options.optimizer == "fused" else {"foreach": False}
    optimizer = torch.optim.AdamW(net.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, **kinds)
    scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
    clock = Clock(options.device)
    for step in range(options.warmup + options.steps):
        tokens = torch.randint(0, vocab, (options.batch, options.length + 1))
        with torch.autocast(options.device, dtype=NARROW.get(options.precision), enabled=options.precision in NARROW):
            loss = net(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        scaler.scale(loss).backward()
        if options.precision == "fp16":
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if step + 1 >= options.warmup:
            clock.step_has_ended()
    memory = torch.cuda.max_memory_allocated() if options.device == "cuda" else 0
    print(json.dumps({"step_ms": clock.step_ms(), "memory_bytes": memory, "loss": loss.item(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
