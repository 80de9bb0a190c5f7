"""Sizes of the models that are measured, and the floating-point operations of a token.

MFU as the trainer reports it: (6 N + 6 L C T) tokens/s over the datasheet's peak; N counts no rows that only pad.
"""
import dataclasses

PEAK_FLOPS_PER_S = {"H100": 989e12, "H200": 989e12}  # bf16, dense, SXM
MEMORY_BYTES_PER_S = {"H100": 3350e9, "H200": 4800e9}


@dataclasses.dataclass(frozen=True)
class Size:
    layers: int
    heads: int
    width: int
    vocabulary: int
    context: int

    def parameters(self):
        block = 12 * self.width**2 + 13 * self.width
        return (self.vocabulary + self.context + 2) * self.width + self.layers * block

    def flops_of_token(self, length):
        return 6 * self.parameters() + 6 * self.layers * self.width * length


SIZES = {"gpt2-tiny": Size(4, 4, 128, 512, 128), "gpt2-mini": Size(6, 6, 384, 512, 256),
         "gpt2-124m": Size(12, 12, 768, 50257, 1024), "gpt2-355m": Size(24, 16, 1024, 50257, 1024),
         "gpt2-774m": Size(36, 20, 1280, 50257, 1024), "gpt2-1558m": Size(48, 25, 1600, 50257, 1024)}


def of_device(table, device):
    """The entry of the model that the device's name has as a word of its own; the NVL and PCIe cards are others."""
    words = device.replace("-", " ").split()
    if "NVL" in words or "PCIe" in words:
        return None
    return next((value for name, value in table.items() if name in words), None)


def mfu(model, length, tokens_per_s, device):
    peak = of_device(PEAK_FLOPS_PER_S, device)
    return None if peak is None else SIZES[model].flops_of_token(length) * tokens_per_s / peak
