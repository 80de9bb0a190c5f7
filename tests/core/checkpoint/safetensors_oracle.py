"""The safetensors package as oracle: it writes, we read and write, it reads the same names, types, shapes and bytes.

safetensors_oracle.py SAFETENSORS_COPY
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint16,
          torch.uint8]
SHAPES = [(), (1,), (7,), (3, 5), (0,), (4, 0, 2), (2, 3, 4, 5)]
METADATA = {"format": "pt", "text": 'quote " backslash \\ newline \n ümlaut 日本'}


def random_tensor(shape, dtype):
    count = torch.Size(shape).numel()
    raw = torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8)
    return raw.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)


def raw_bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def read(path):
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        return tensors, file.metadata()


def main():
    torch.manual_seed(1)
    tensors = {f"{str(dtype)[6:]}.{'x'.join(map(str, shape)) or 'scalar'}": random_tensor(shape, dtype)
               for dtype in DTYPES for shape in SHAPES}
    tensors["ümlaut \" 日本"] = random_tensor((3,), torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "theirs", Path(folder) / "ours"
        save_file(tensors, theirs, metadata=METADATA)
        subprocess.run([sys.argv[1], theirs, ours], check=True)
        copied, metadata = read(ours)
        assert metadata == METADATA, metadata
        assert copied.keys() == tensors.keys(), set(copied) ^ set(tensors)
        for name, tensor in tensors.items():
            copy = copied[name]
            assert copy.dtype == tensor.dtype and copy.shape == tensor.shape, (name, copy.dtype, copy.shape)
            assert raw_bytes(copy) == raw_bytes(tensor), name
    print(f"{len(tensors)} tensors equal")


if __name__ == "__main__":
    main()
