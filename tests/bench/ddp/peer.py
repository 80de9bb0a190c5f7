"""The peer: PyTorch DistributedDataParallel on Gloo with a GPT-2 in plain PyTorch, as a careful user would write it.

Scaled-dot-product attention, tied head, tanh GELU, fused AdamW, clipping, gradients as views of the buckets, one thread
per rank when ranks fill the cores. Prints one JSON line: the time of every step after the warm-up. Starts its ranks
itself, or is one of those that mpirun starts on several hosts (--rendezvous tcp://...).
"""

import argparse
import json
import math
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "reference"))
import cables  # noqa: E402

SIZES = {"gpt2-mini": (6, 6, 384, 512, 256), "gpt2-124m": (12, 12, 768, 50257, 1024)}  # layers, heads, width, V, context


class Block(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU(approximate="tanh")
        for linear in (self.attn_proj, self.mlp_proj):
            linear.residual_std = 0.02 / math.sqrt(2 * layers)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp_proj(self.act(self.c_fc(self.ln_2(x))))


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, vocab, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, layers) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.wte.weight
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=getattr(module, "residual_std", 0.02))
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, inputs, targets):
        x = self.wte(inputs) + self.wpe(torch.arange(inputs.shape[1], device=inputs.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def train(rank, args):
    """The times of the steps, in seconds."""
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // args.ranks)
    os.sched_setaffinity(0, cores[rank * share % len(cores):][:share])
    torch.set_num_threads(share)
    torch.set_flush_denormal(True)
    torch.manual_seed(1337)
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks, init_method=args.rendezvous)
    layers, heads, width, vocab, context = SIZES[args.model]
    vocab = args.vocab_size or vocab
    layers, heads, width = args.layers or layers, args.heads or heads, args.width or width
    model = nn.parallel.DistributedDataParallel(Gpt2(layers, heads, width, vocab, context), gradient_as_bucket_view=True)
    if args.compress:
        model.register_comm_hook(dist.group.WORLD, default_hooks.bf16_compress_hook)
    step_model = torch.compile(model) if args.compile else model
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=6e-4, betas=(0.9, 0.95), fused=True)
    times = []
    for step in range(args.warmup + args.steps):
        tokens = torch.randint(0, vocab, (args.batch_size, args.sequence_length + 1))
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            loss = step_model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        if step >= args.warmup:
            times.append(time.perf_counter() - begin)
    dist.destroy_process_group()
    return times


def train_one_of_many(rank, args, results):
    times = train(rank, args)
    if rank == 0:
        results.put(times)


def times_of_own_ranks(args):
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    ranks = [context.Process(target=train_one_of_many, args=(rank, args, results)) for rank in range(args.ranks)]
    for process in ranks:
        process.start()
    times = results.get()
    for process in ranks:
        process.join()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SIZES, required=True)
    for size in ("--vocab-size", "--layers", "--heads", "--width"):
        parser.add_argument(size, type=int, default=0, help="0: the model's")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--sequence-length", type=int, required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--compile", action="store_true", help="torch.compile, warm-up steps include the compilation")
    parser.add_argument("--compress", action="store_true", help="gradients cross as bf16")
    parser.add_argument("--rendezvous", required=True, help="file:///... or tcp://host:port")
    args = parser.parse_args()
    rank = os.environ.get("OMPI_COMM_WORLD_RANK")
    if rank is None:
        times = times_of_own_ranks(args)
    else:
        args.ranks = int(os.environ["OMPI_COMM_WORLD_SIZE"])
        if args.rendezvous.startswith("tcp://"):
            os.environ["GLOO_SOCKET_IFNAME"] = cables.own_interface()
        times = train(int(rank), args)
        if rank != "0":
            return
    print(json.dumps({"step_s": times}))


if __name__ == "__main__":
    main()
