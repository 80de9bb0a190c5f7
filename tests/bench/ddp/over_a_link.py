"""Training over a slow cable: two hosts with one CPU rank each, Sidestream against PyTorch DDP on Gloo, and how much of the
communication hides behind the computation.

    build/env/bin/python tests/bench/ddp/over_a_link.py [--rate 1gbit] [--batch 16] [--layers 6] [--repeats 3] [--output FILE]

The hosts are network namespaces of this machine. Compute: the same run over a cable without a limit, with --overlap on;
communication: the all-reduces of a step back to back, by their bytes and the rate of the cable. A figure is the median over
repeats with their range; ratios and shares are the repeats' own. The ratio of computing to communicating decides what can be
hidden: sizes of the model and --batch set it on a machine that computes slower or faster. Gradients of a training in bf16
cross as bf16 on both sides, with --reduce-dtype bf16 those of one in fp32, too: DDP, whose autocast keeps fp32, by its own hook. Needs
root and iproute2.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import cables  # noqa: E402
import kept  # noqa: E402
import machine  # noqa: E402
from spread import interval, ratios  # noqa: E402

WARMUP, STEPS = 10, 8  # the trainer measures its buckets in steps 3 to 6, and has its own cut of them from step 7 on
OURS_UNLIMITED, OVERLAPPED, BLOCKING, DDP = "computing", "overlapped", "not overlapped", "ddp"


def shape_flags(options, batch_flag):
    """As both sides take them."""
    flags = ["--model", options.model, "--vocab-size", options.vocab, "--sequence-length", options.length, batch_flag, options.batch,
             "--precision", options.precision]
    for name in ("layers", "heads", "width"):
        if getattr(options, name):
            flags += [f"--{name}", getattr(options, name)]
    return flags


def crosses_as_bf16(options):
    return "bf16" in (options.precision, options.reduce_dtype)


def ours(options, rate, flags):
    """Median step in seconds, and the bytes that a rank hands to all-reduce in it."""
    with tempfile.TemporaryDirectory() as folder:
        cables.run_on_hosts([1, 1], rate, [
            options.build / "sidestream", "train", "--run-dir", f"{folder}/run", "--data", "synthetic", "--device", "cpu",
            *shape_flags(options, "--batch-size-per-rank"), "--steps", WARMUP + STEPS, "--eval-every", 0, "--log-every", 1, "--threads", 1,
            *(["--reduce-dtype", options.reduce_dtype] if options.reduce_dtype else []), *flags])
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        record = json.load(open(f"{folder}/run/run.json"))
    element = 2 if crosses_as_bf16(options) else 4
    return statistics.median(line["batch_cost_s"] for line in lines[WARMUP:]), record["parameters"] * element


def peer(options):
    output = cables.run_on_hosts([1, 1], options.rate, [
        sys.executable, ROOT / "tests/bench/ddp/peer.py", *shape_flags(options, "--batch-size"), "--steps", STEPS, "--warmup", WARMUP,
        "--rendezvous", cables.RENDEZVOUS, *(["--compress"] if crosses_as_bf16(options) else [])])
    return statistics.median(json.loads(output.splitlines()[-1])["step_s"])


def one_round(options):
    """The median step of each, and the seconds that its all-reduces take on the wire: with two ranks every byte crosses each way
    once."""
    free, nbytes = ours(options, "100gbit", [])
    steps = {OURS_UNLIMITED: free, OVERLAPPED: ours(options, options.rate, [])[0],
             BLOCKING: ours(options, options.rate, ["--overlap", "off"])[0], DDP: peer(options)}
    print(steps, file=sys.stderr, flush=True)
    return steps, nbytes / cables.bytes_per_s(options.rate)


def hidden_share(steps, wire_s):
    """Of the shorter of computing and communicating, the part that the other covers."""
    saved = steps[OURS_UNLIMITED] + wire_s - steps[OVERLAPPED]
    return min(saved / min(steps[OURS_UNLIMITED], wire_s), 1)


def table(rounds, wire_s):
    titles = {OURS_UNLIMITED: "a step over a cable without a limit", OVERLAPPED: "a step, `--overlap on`",
              BLOCKING: "a step, `--overlap off`", DDP: "a step of PyTorch DDP"}
    lines = ["| | s |", "|---|--:|", f"| all-reduces of a step at the rate of the cable | {wire_s:.3f} |"]
    return lines + [f"| {title} | {interval([one[side] for one in rounds], '{:.3f}')} |" for side, title in titles.items()]


def summary(rounds, wire_s):
    overlapped = [one[OVERLAPPED] for one in rounds]
    bound = [max(one[OURS_UNLIMITED], wire_s) for one in rounds]
    hidden = [100 * hidden_share(one, wire_s) for one in rounds]
    return (f"Step over the longer of computing and communicating: {interval(ratios(overlapped, bound))}. Of what can be hidden, "
            f"{interval(hidden, '{:.0f}', ' %')} is. Against DDP {interval(ratios([one[DDP] for one in rounds], overlapped), unit='x')}.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--reduce-dtype", choices=("bf16",), help="in which gradients of fp32 cross")
    parser.add_argument("--model", choices=("gpt2-mini", "gpt2-124m"), default="gpt2-mini")
    parser.add_argument("--vocab", type=int, default=512)
    parser.add_argument("--batch", type=int, default=16, help="samples of a rank")
    parser.add_argument("--length", type=int, default=256, help="tokens of a sample")
    for size in ("--layers", "--heads", "--width"):
        parser.add_argument(size, type=int, help="instead of the model's")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    if options.reduce_dtype and options.precision != "fp32":
        parser.error("--reduce-dtype bf16 needs --precision fp32: gradients of bf16 cross as bf16 anyway")
    return options


def main():
    options = parse()
    measured = [one_round(options) for _ in range(options.repeats)]
    rounds, wire_s = [steps for steps, _ in measured], measured[0][1]
    layers = f", {options.layers} layers" if options.layers else ""
    crossing = f", gradients crossing as {options.reduce_dtype}" if options.reduce_dtype else ""
    lines = [f"# {options.model}, {options.precision}{crossing}, over a cable of {options.rate}", "",
             f"{machine.today_here()} for both hosts, one rank and one thread a host, B = {options.batch}, T = {options.length}{layers}. "
             f"Medians of {options.repeats} interleaved repeats, with their range; {STEPS} steps each after {WARMUP}.",
             f"Command: `{shlex.join(['python', 'tests/bench/ddp/over_a_link.py', *sys.argv[1:]])}`", "",
             *table(rounds, wire_s), "", summary(rounds, wire_s),
             *(["DDP's gradients cross as bf16, too (`bf16_compress_hook`)."] if crosses_as_bf16(options) else [])]
    print("\n".join(lines))
    if options.output:
        kept.keep(options.output, "\n".join(lines))


if __name__ == "__main__":
    main()
