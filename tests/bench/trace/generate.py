"""Kineto traces of any size, about 4000 events a megabyte, shaped as PyTorch writes them.

    python tests/bench/trace/generate.py --ranks 8 --megabytes 50 --output FOLDER

Every step has operators, launches, kernels on one stream, copies, and collectives on another that partly overlap.
"""
import argparse
import json
import pathlib
import random

OPERATORS = ["aten::linear", "aten::addmm", "aten::gelu", "aten::layer_norm", "aten::add_", "aten::transpose",
             "autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "aten::mul", "aten::copy_"]
KERNELS = ["sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
           "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
           "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
           "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)",
           "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"]
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def event(category, name, pid, tid, start_ns, duration_ns, arguments):
    inside = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in arguments.items())
    return (f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {start_ns // 1000}.{start_ns % 1000:03d}, "dur": {duration_ns // 1000}.{duration_ns % 1000:03d},\n'
            f'    "args": {{\n      {inside}\n    }}\n  }}')


class Rank:
    def __init__(self, rank, ranks, seed, layers):
        self.rank, self.ranks, self.layers = rank, ranks, layers
        self.random = random.Random(seed * 1000 + rank)
        self.host_ns = self.device_ns = 6_869_181_218_000_000 + rank * 1_000
        self.number = 1

    def layer(self):
        """An operator with what it launches."""
        pid, self.number = 4000 + self.rank, self.number + 1
        external, correlation, length = self.number, self.number, self.random.randrange(4_000, 60_000)
        start = self.host_ns
        yield event("cpu_op", self.random.choice(OPERATORS), pid, pid, start, 9_000,
                    {"External id": external, "Record function id": 0, "Sequence number": external, "Fwd thread id": 0,
                     "Ev Idx": external})
        yield event("cuda_runtime", "cudaLaunchKernel", pid, pid, start + 3_000, 4_000,
                    {"External id": external, "cbid": 211, "correlation": correlation})
        self.device_ns = max(self.device_ns, start + 6_000)
        yield event("kernel", self.random.choice(KERNELS), 0, 7, self.device_ns, length,
                    {"External id": external, "queued": 0, "device": 0, "context": 1, "stream": 7,
                     "correlation": correlation, "registers per thread": 128, "shared memory": 49152,
                     "blocks per SM": 4.5, "warps per SM": 36, "grid": [512, 1, 1], "block": [256, 1, 1],
                     "est. achieved occupancy %": 50})
        yield (f'  {{\n    "ph": "s", "id": {correlation}, "pid": {pid}, "tid": {pid}, "ts": {start // 1000}.{start % 1000:03d},\n'
               f'    "cat": "ac2g", "name": "ac2g"\n  }}')
        at = self.device_ns
        yield (f'  {{\n    "ph": "f", "id": {correlation}, "pid": 0, "tid": 7, "ts": {at // 1000}.{at % 1000:03d},\n'
               f'    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }}')
        self.device_ns += length
        self.host_ns += 10_000

    def collective(self, sequence):
        pid, self.number = 4000 + self.rank, self.number + 1
        yield event("cuda_runtime", "cudaLaunchKernelExC", pid, pid + 1, self.device_ns - 30_000, 4_000,
                    {"External id": self.number, "cbid": 430, "correlation": self.number})
        yield event("kernel", COLLECTIVE, 0, 40, self.device_ns - 20_000, 120_000 + self.random.randrange(80_000),
                    {"External id": self.number, "device": 0, "context": 1, "stream": 40, "correlation": self.number,
                     "grid": [8, 1, 1], "block": [512, 1, 1], "Collective name": "allreduce", "In msg nelems": 6553600,
                     "Out msg nelems": 6553600, "Group size": self.ranks, "dtype": "Float", "Process Group Name": "0",
                     "Process Group Ranks": str(list(range(self.ranks))), "Seq": sequence})

    def step(self, step):
        start, pid = self.host_ns, 4000 + self.rank
        for bucket in range(10):
            for _ in range(self.layers):
                yield from self.layer()
            yield from self.collective(step * 10 + bucket)
        self.host_ns = max(self.host_ns, self.device_ns)
        yield event("user_annotation", f"ProfilerStep#{step}", pid, pid, start, self.host_ns - start, {"External id": step})
        self.host_ns += 2_000


def write(path, rank, limit_bytes, options):
    ranks = options.ranks
    source, size, step = Rank(rank, ranks, options.seed, options.layers), 0, 1
    with open(path, "w") as file:
        file.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "generated", "numSms": 132}],\n'
                   f'  "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {ranks}}},\n'
                   '  "displayTimeUnit": "ms", "baseTimeNanoseconds": 1711964646000000000,\n  "traceEvents": [\n')
        while size < limit_bytes:
            text = ",\n".join(source.step(step))
            file.write((",\n" if step > 1 else "") + text)
            size, step = size + len(text), step + 1
        file.write('\n  ],\n  "traceName": "generated"\n}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=50, help="of each file")
    parser.add_argument("--layers", type=int, default=100, help="between two collectives; a step has ten of these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for rank in range(options.ranks):
        write(options.output / f"rank-{rank}.json", rank, int(options.megabytes * 1e6), options)


if __name__ == "__main__":
    main()
