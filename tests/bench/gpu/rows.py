"""What is measured, by name: sides that run in turn, at the batch that each is fastest with and at the largest that all have room
for, or at given batches."""
import dataclasses

from sides import Side

OURS = ("--precision", "bf16", "--pad-vocab", "128")
GRAPH = ("--cuda-graph", "on")
PACKED = ("--packed-attention", "on")
TUNED = ("--tune-products", "on")
WITHOUT_PACKED = ("--packed-attention", "off")
WITHOUT_TUNED = ("--tune-products", "off")
MICRO_STEPS = ("--grad-accumulation", "4")  # as peers report it: the update is of many micro-steps
NARROW_STATES = ("--optimizer-state-dtype", "bf16")
COMPILED = ("--precision", "bf16", "--pad-vocab", "128", "--compile")
PEERS = ("compiled", "llm.c")
BF16 = ("--baseline", "--precision", "bf16")
AHEAD = ("--loader-workers", "1", "--prefetch", "4")
RECOMPUTED = (*BF16, "--fused-optimizer", "on", "--recompute", "blocks")
ON_GPUS_ONLY = {"tf32", "fp16", "--packed-attention", "--tune-products", "--offload", "--cuda-graph", "--late-loss"}


@dataclasses.dataclass(frozen=True)
class Row:
    model: str
    length: int
    sides: tuple
    wanted: str = ""
    batches: tuple = ()  # none: they are searched
    first_batch: int = 8
    largest_batch: int = 512


def ours(name, *flags, against=()):
    return Side(name, "ours", flags, tuple(against))


def pytorch(name, *flags):
    return Side(name, "pytorch", flags)


def graph_row(model, length, batches):
    peers = ("eager", "compiled", "compiled with graphs")
    return Row(model, length, (
        ours("graph off", *OURS, "--cuda-graph", "off", against=peers),
        ours("graph on", *OURS, *GRAPH, against=("graph off", *peers)),
        pytorch("eager", "--precision", "bf16"), pytorch("compiled", *COMPILED),
        pytorch("compiled with graphs", *COMPILED, "reduce-overhead")), batches=batches)


def toggle(name, *flags, peer="eager bf16"):
    return ours(name, *flags, against=(peer,))


# The baseline, each flag alone on bf16, then all together; each beside the peer that does the same work.
TOGGLES = (
    toggle("baseline (fp32)", "--baseline", peer="eager fp32"),
    toggle("tf32", "--baseline", "--precision", "tf32", peer="eager tf32"),
    toggle("bf16", *BF16),
    toggle("bf16 + bucketing", *BF16, "--bucketing", "on"),
    toggle("bf16 + overlap", *BF16, "--bucketing", "on", "--overlap", "on"),
    toggle("bf16 + fused optimizer", *BF16, "--fused-optimizer", "on"),
    toggle("bf16 + fused operators", *BF16, "--fused-ops", "on"),
    toggle("bf16 + fused operators, packed attention", *BF16, "--fused-ops", "on", *PACKED),
    toggle("bf16 + fused operators, tuned products", *BF16, "--fused-ops", "on", *TUNED),
    toggle("fp16", "--baseline", "--precision", "fp16", peer="eager fp16"),
    toggle("fp16 + fused operators", "--baseline", "--precision", "fp16", "--fused-ops", "on", peer="eager fp16"),
    toggle("fp32 + fused operators", "--baseline", "--fused-ops", "on", peer="eager fp32"),
    toggle("bf16 + reading ahead", *BF16, *AHEAD),
    toggle("bf16 + reading ahead, pinned", *BF16, *AHEAD, "--pin-memory", "on"),
    toggle("bf16 + losses read late", *BF16, "--late-loss", "on"),
    toggle("bf16 + padded vocabulary", *BF16, "--pad-vocab", "128"),
    toggle("bf16 + fused optimizer, recomputed blocks", *RECOMPUTED),
    toggle("the same, residuals offloaded", *RECOMPUTED, "--offload", "residuals"),
    toggle("the same, optimizer offloaded", *RECOMPUTED, "--offload", "optimizer"),
    toggle("bf16 + CUDA graph", *BF16, "--fused-optimizer", "on", *GRAPH),
    toggle("all together", *OURS, peer="eager bf16, fused"),
    toggle("all together + CUDA graph", *OURS, *GRAPH, peer="eager bf16, fused"),
    *(pytorch(f"eager {precision}", "--precision", precision, "--optimizer", "plain") for precision in ("fp32", "tf32", "bf16", "fp16")),
    pytorch("eager bf16, fused", "--precision", "bf16"),
)

ROWS = {
    "124m": Row("gpt2-124m", 1024, (
        ours("ours", *OURS, against=PEERS), ours("ours, graph", *OURS, *GRAPH, against=PEERS),
        ours("ours, graph, LibTorch's attention", *OURS, *GRAPH, *WITHOUT_PACKED, against=("ours, graph", *PEERS)),
        ours("ours, graph, LibTorch's products", *OURS, *GRAPH, *WITHOUT_TUNED, against=("ours, graph", *PEERS)),
        pytorch("compiled", *COMPILED), Side("llm.c", "llm.c", ("-r", "0"))),
                "at least 1.15 times torch.compile and 1.1 times llm.c; mfu at least 45 %", first_batch=16),
    "355m": Row("gpt2-355m", 1024, (ours("ours", *OURS), ours("ours, graph", *OURS, *GRAPH, against=("ours",))), "mfu at least 50 %"),
    "1558m": Row("gpt2-1558m", 1024, (
        ours("ours", *OURS), ours("ours, graph", *OURS, *GRAPH, against=("ours",)),
        ours("ours, graph, LibTorch's attention and products", *OURS, *GRAPH, *WITHOUT_PACKED, *WITHOUT_TUNED, against=("ours, graph",)),
        ours("ours, graph, 4 micro-steps", *OURS, *GRAPH, *MICRO_STEPS, against=("ours, graph",)),
        ours("ours, graph, 4 micro-steps, bf16 states", *OURS, *GRAPH, *MICRO_STEPS, *NARROW_STATES, against=("ours, graph",))),
                 "mfu at least 55 %, with states in bf16 58 %", first_batch=4),
    "mini-graph": graph_row("gpt2-mini", 256, (4, 16, 64)),
    "124m-graph": graph_row("gpt2-124m", 1024, (4,)),
    "toggles": Row("gpt2-124m", 1024, TOGGLES, batches=(16,)),
}


def runs_on(side, device, has_llmc):
    if side.kind == "llm.c":
        return has_llmc
    return device == "cuda" or not ON_GPUS_ONLY.intersection(side.flags)


def possible(row, device, has_llmc):
    """The row with the sides that can run here."""
    return dataclasses.replace(row, sides=tuple(side for side in row.sides if runs_on(side, device, has_llmc)))


def small(row):
    """For trying the scripts on a processor."""
    return dataclasses.replace(row, model="gpt2-tiny", length=32, first_batch=2, largest_batch=4, batches=row.batches and (2,))
