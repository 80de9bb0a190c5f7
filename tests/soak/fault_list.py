"""The faults that the advice knows, as trainings: what plants each, what mends it, and which rule has to find it."""
import dataclasses
import pathlib

PROCESSOR = pathlib.Path("/proc/cpuinfo").read_text()
MULTIPLIES_BF16 = "amx_bf16" in PROCESSOR or "avx512_bf16" in PROCESSOR
RANKS = 2
# A step of a tenth to a fifth of a second, which is what the sleeps below are made for.
LAYERS = [] if MULTIPLIES_BF16 else ["--layers", "2"]
MINI = ["--model", "gpt2-mini", "--sequence-length", "64", "--batch-size-per-rank", "4", *LAYERS]
TINY = ["--model", "gpt2-tiny", "--sequence-length", "64", "--batch-size-per-rank", "4"]
BF16 = ["--precision", "bf16"] if MULTIPLIES_BF16 else []  # else fp32 is the faster one


@dataclasses.dataclass
class Fault:
    name: str
    rule: str                                        # empty: healthy
    common: list = dataclasses.field(default_factory=list)
    faulty: list = dataclasses.field(default_factory=list)
    fixed: list = dataclasses.field(default_factory=list)
    sleep: str = ""                                  # SIDESTREAM_TEST_SLEEP of the faulty side
    fixed_sleep: str = ""
    follows: tuple = ()                              # rules that speak because of the fault itself
    last_rank: list = dataclasses.field(default_factory=list)  # flags of the last rank alone, on the faulty side
    ranks: int = RANKS
    data_files: int = 0                              # shards of its data folder on the faulty side; 0: synthetic data
    period: bool = False                             # measured from the start of a step to the start of the next one
    note: str = ""
    costs_little: bool = False                       # here: its gain is measured, and proves nothing about the bound
    impossible: str = ""                             # why it cannot be made on this machine
    rate: str = ""                                   # of a cable between two hosts of one rank each; empty: one host


# Over a cable a rank has a host of its own, but its processor is one of this machine's two. Few words, for the gradient of the table
# of words is there last, and nothing hides it.
CABLE = ["--threads", "1", "--model", "gpt2-mini", "--vocab-size", "512", "--sequence-length", "64",
         *(["--batch-size-per-rank", "32"] if MULTIPLIES_BF16 else ["--layers", "3", "--batch-size-per-rank", "8"])]
MANY_TENSORS = ["--threads", "1", "--model", "gpt2-tiny", "--layers", "48",
                *(["--sequence-length", "64", "--batch-size-per-rank", "4"] if MULTIPLIES_BF16
                  else ["--width", "32", "--heads", "2", "--sequence-length", "16", "--batch-size-per-rank", "1"])]
# Few tokens, where products are slow: so that what is done once a step, or at every operator, counts.
FEW_TOKENS = MINI if MULTIPLIES_BF16 else ["--model", "gpt2-mini", "--sequence-length", "16", "--batch-size-per-rank", "1"]
FAULTS = [
    Fault("loader workers 0", "input-no-workers", MINI + BF16, ["--loader-workers", "0", "--prefetch", "0"], [],
          sleep="-1:load:240", fixed_sleep="-1:load:240", note="a batch takes 240 ms to read"),
    Fault("a slow loader", "input-slow", MINI + BF16, [], ["--loader-workers", "4", "--prefetch", "8"],
          sleep="-1:load:400", fixed_sleep="-1:load:400", note="a batch takes 400 ms to read"),
    Fault("overlap off", "not-overlapped", CABLE + BF16, ["--overlap", "off"], ["--overlap", "on"], follows=("link-bound",), rate="600mbit",
          note="two hosts and a cable of 600 Mbit/s"),
    Fault("tiny buckets", "tiny-buckets", MANY_TENSORS + BF16, ["--bucketing", "off"], [], follows=("not-overlapped", "link-bound"), rate="1gbit",
          note="580 tensors, two hosts and a cable of 1 Gbit/s"),
    Fault("one huge bucket", "one-bucket", CABLE + BF16, ["--bucket-mb", "1000", "--first-bucket-mb", "1000"], [], follows=("link-bound",),
          rate="600mbit", note="two hosts and a cable of 600 Mbit/s"),
    Fault("unfused optimizer", "unfused-optimizer", FEW_TOKENS + BF16, ["--fused-optimizer", "off"], []),
    Fault("fp32 where bf16 is at hand", "no-amp", MINI, ["--precision", "fp32"], BF16,
          impossible="" if MULTIPLIES_BF16 else "not on this processor: fp32 is the faster one"),
    Fault("thread oversubscription", "oversubscribed", [*FEW_TOKENS, *LAYERS, *BF16], ["--threads", "4" if MULTIPLIES_BF16 else "8"], []),
    Fault("one slow rank", "straggler", MINI + BF16, sleep="1:forward:150"),
    Fault("one rank with a bigger batch", "straggler", MINI + BF16, last_rank=["--batch-size-per-rank", "8"]),
    Fault("many small files", "many-small-files", MINI + BF16, sleep="-1:load:300", data_files=400,
          note="400 shards of 4 kB, and a batch takes 300 ms to read; the fixed side reads one shard at once"),
    Fault("vocabulary of 50257", "shapes", TINY + BF16 + ["--vocab-size", "50257"], [], ["--pad-vocab", "64"], costs_little=True,
          note="the head packs its rows anyway: it costs a GPU, and little here"),
    Fault("shapes that miss multiples of 8", "shapes", ["--model", "gpt2-mini", "--heads", "6", "--batch-size-per-rank", "4"] + BF16,
          ["--width", "378", "--sequence-length", "63"], ["--width", "384", "--sequence-length", "64"],
          costs_little=not MULTIPLIES_BF16, note="the fixed side has a slightly larger model" + ("" if MULTIPLIES_BF16 else ", and fp32 minds little")),
    Fault("denormals", "denormals", TINY, ["--flush-denormals", "off"], [], follows=("no-amp",),
          impossible="on Intel's processors: AMD's hardly mind denormals" if "AuthenticAMD" in PROCESSOR else "",
          note="weights of 1e-40 in every product"),
    Fault("checkpoint writing inside the step", "checkpoint-in-step", MINI + BF16, ["--checkpoint-every", "1"], ["--checkpoint-every", "0"], period=True,
          note="between the steps"),
    Fault("healthy, two ranks", "", MINI + BF16),
    Fault("healthy, longer sequences", "", ["--model", "gpt2-mini", "--sequence-length", "128", "--batch-size-per-rank", "4"] + BF16),
    Fault("healthy, one rank", "", MINI + BF16, ranks=1),
    Fault("healthy, accumulating", "", MINI + BF16 + ["--grad-accumulation", "2"]),
    Fault("healthy, every rank keeps all", "", MINI + BF16 + ["--zero", "0"]),
]
# What flags cannot make on a CPU, or the rule cannot see there.
ELSEWHERE = [
    *[(fault.name, fault.rule, fault.impossible) for fault in FAULTS if fault.impossible],
    ("a .item() each step", "item-each-step", "on a GPU only: on the processor nothing waits for a value"),
    ("logging each step with a sync", "logging-each-step", "on a GPU only, for the same reason"),
]


def folder_of(fault):
    """Of its recording in tests/data/traces/faults."""
    return fault.name.replace(",", "").replace(" ", "_").lower()


# Of `not_measured`, what is no rule.
FIGURES = ("ettr", "gpu_utilisation", "gpu_counters", "joules_per_token", "mfu", "mfu_palm", "tensor_core_share", "tokens_per_s")


def rules_that_could_not_look(found):
    """Of a report: what it says of figures of devices and of the whole run is not the advice's."""
    return sorted(one["rule"] for one in found["not_measured"] if one["rule"] not in FIGURES)
