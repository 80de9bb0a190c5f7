"""The peer on a GPU: PyTorch eager with the GPT-2 of the CPU comparison, bf16 autocast, fused AdamW, clipping.

Prints one JSON line: the time of every step after the warm-up, taken between events, and the kernel of attention is
PyTorch's own choice.
"""

import argparse
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ddp"))
from peer import SIZES, Gpt2  # noqa: E402

VOCAB = 50257


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    return parser.parse_args()


def main():
    options = parse()
    torch.set_default_device("cuda")
    torch.set_float32_matmul_precision("high")
    layers, heads, width, _, context = SIZES["gpt2-124m"]
    net = Gpt2(layers, heads, width, VOCAB, context)
    optimizer = torch.optim.AdamW(net.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    times = []
    for step in range(options.warmup + options.steps):
        tokens = torch.randint(0, VOCAB, (options.batch, options.length + 1))
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = net(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        if step >= options.warmup:
            times.append(begin.elapsed_time(end))
    print(json.dumps({"step_ms": times, "memory_bytes": torch.cuda.max_memory_allocated(), "loss": loss.item()}))


if __name__ == "__main__":
    main()
