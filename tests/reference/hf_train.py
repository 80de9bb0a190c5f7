"""Oracle: trains GPT2LMHeadModel of Hugging Face's transformers from a checkpoint folder on llm.c token shards.

Plain PyTorch throughout: torch.optim.AdamW with decay on parameters of two or more dimensions, clipping by the global
norm, a constant learning rate, samples in the order of their numbers (sample i is tokens i T .. i T + T). Prints one
JSON line a step: step, loss, grad_norm.
"""

import argparse
import json
import pathlib

import numpy
import torch
from transformers import GPT2LMHeadModel

HEADER_BYTES = 1024


def read_tokens(folder):
    shards = sorted(path for path in pathlib.Path(folder).glob("*.bin") if "train" in path.name)
    return numpy.concatenate([numpy.fromfile(path, numpy.uint16, offset=HEADER_BYTES) for path in shards]).astype(numpy.int64)


def batch(tokens, step, size, length):
    count = (len(tokens) - 1) // length
    first = [((step - 1) * size + row) % count * length for row in range(size)]
    return (torch.tensor(numpy.stack([tokens[i:i + length] for i in first])),
            torch.tensor(numpy.stack([tokens[i + 1:i + 1 + length] for i in first])))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--sequence-length", type=int, required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = GPT2LMHeadModel.from_pretrained(args.checkpoint, attn_implementation="eager").float().train()
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8)
    tokens = read_tokens(args.data)
    for step in range(1, args.steps + 1):
        inputs, targets = batch(tokens, step, args.batch_size, args.sequence_length)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model(inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item(), "grad_norm": norm.item()}), flush=True)


if __name__ == "__main__":
    main()
