"""Records a small Kineto trace with PyTorch on the processor, and what PyTorch itself counts in it.

    build/env/bin/python tests/reference/record_torch_trace.py FOLDER

FOLDER/rank-0.json: two steps of a small network with matrix products, attention and a convolution, shapes, memory and
modules recorded. FOLDER/flops.json: {operator: FLOPs} of torch.utils.flop_counter over the same two steps.
"""
import json
import pathlib
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

STEPS, BATCH, HEADS, PIXELS, HEAD_SIZE = (1, 2), 4, 4, 64, 8


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.attention_in = torch.nn.Linear(32, 96)
        self.out = torch.nn.Linear(32, 10)

    def forward(self, images):
        with record_function("convolution"):
            pixels_btc = self.convolution(images).flatten(2).transpose(1, 2)
        with record_function("attention"):
            query, key, value = (part.unflatten(-1, (HEADS, HEAD_SIZE)).transpose(1, 2)
                                 for part in self.attention_in(pixels_btc).chunk(3, -1))
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        with record_function("out"):
            return self.out(mixed.transpose(1, 2).flatten(2).mean(1))


def step(network, optimizer, number):
    with record_function(f"ProfilerStep#{number}"):
        with record_function("forward"):
            loss = torch.nn.functional.cross_entropy(network(torch.randn(BATCH, 3, 16, 16)),
                                                     torch.randint(10, (BATCH,)))
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    step(network, optimizer, 0)
    counter = FlopCounterMode(display=False)
    with counter:
        for number in STEPS:
            step(network, optimizer, number)
    flops = {str(operator).replace(".", "::"): count for operator, count in counter.get_flop_counts()["Global"].items()}
    # Of the processor's attention the counter knows only the formula.
    shape, name = (BATCH, HEADS, PIXELS, HEAD_SIZE), "aten::_scaled_dot_product_flash_attention_for_cpu"
    flops[name] = len(STEPS) * sdpa_flop_count(shape, shape, shape)
    flops[name + "_backward"] = len(STEPS) * sdpa_backward_flop_count(shape, shape, shape, shape)
    (folder / "flops.json").write_text(json.dumps(flops, indent=1) + "\n")
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as recorded:
        recorded.add_metadata_json("distributedInfo", json.dumps({"backend": "gloo", "rank": 0, "world_size": 1}))
        for number in STEPS:
            step(network, optimizer, number)
    recorded.export_chrome_trace(str(folder / "rank-0.json"))


if __name__ == "__main__":
    main()
