"""Bytes per second, read and written, of copies on the device: 1 GiB, by the device's own clock. Prints one JSON line."""
import argparse
import json
import statistics
import time

import torch

ELEMENTS = 1 << 28
GROUP, GROUPS = 10, 7


def seconds_on_gpu(copy):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    copy()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e-3


def seconds_here(copy):
    begin = time.perf_counter()
    copy()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    source, target = torch.ones(ELEMENTS, device=device), torch.empty(ELEMENTS, device=device)

    def copies():
        for _ in range(GROUP):
            target.copy_(source)

    copies()
    seconds = seconds_on_gpu if device == "cuda" else seconds_here
    rates = [2 * GROUP * source.nbytes / seconds(copies) for _ in range(GROUPS)]
    print(json.dumps({"bytes_per_s": statistics.median(rates)}))


if __name__ == "__main__":
    main()
