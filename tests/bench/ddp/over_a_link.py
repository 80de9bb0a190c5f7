"""Training over a slow cable: two hosts with one CPU rank each, Sidestream against PyTorch DDP on Gloo, and how much of the
communication hides behind the computation.

    build/env/bin/python tests/bench/ddp/over_a_link.py [--rate 1gbit] [--repeats 3] [--output FILE]

The hosts are network namespaces of this machine. Compute: the same run over a cable without a limit, with --overlap on;
communication: the all-reduces of a step back to back, by their bytes and the rate of the cable. Needs root and iproute2.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/reference"))
import cables  # noqa: E402
import machine  # noqa: E402

MODEL = {"model": "gpt2-mini", "vocab": 512, "batch": 16, "length": 256}
WARMUP, STEPS = 3, 8


def ours(options, rate, flags):
    """Median step in seconds, and the bytes that a rank hands to all-reduce in it."""
    with tempfile.TemporaryDirectory() as folder:
        cables.run_on_hosts([1, 1], rate, [
            options.build / "sidestream", "train", "--run-dir", f"{folder}/run", "--data", "synthetic", "--device", "cpu", "--model",
            MODEL["model"], "--vocab-size", MODEL["vocab"], "--sequence-length", MODEL["length"], "--batch-size-per-rank",
            MODEL["batch"], "--steps", WARMUP + STEPS, "--precision", options.precision, "--eval-every", 0, "--log-every", 1,
            "--threads", 1, *flags])
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        record = json.load(open(f"{folder}/run/run.json"))
    element = 2 if options.precision == "bf16" else 4
    return statistics.median(line["batch_cost_s"] for line in lines[WARMUP:]), record["parameters"] * element


def peer(options):
    output = cables.run_on_hosts([1, 1], options.rate, [
        sys.executable, ROOT / "tests/bench/ddp/peer.py", "--model", MODEL["model"], "--vocab-size", MODEL["vocab"], "--batch-size",
        MODEL["batch"], "--sequence-length", MODEL["length"], "--steps", STEPS, "--warmup", WARMUP, "--precision", options.precision,
        "--rendezvous", cables.RENDEZVOUS])
    return statistics.median(json.loads(output.splitlines()[-1])["step_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    rounds = []
    for _ in range(options.repeats):
        free, nbytes = ours(options, "100gbit", [])
        rounds.append({"computing": free, "overlapped": ours(options, options.rate, [])[0],
                       "not overlapped": ours(options, options.rate, ["--overlap", "off"])[0], "ddp": peer(options)})
        print(rounds[-1], file=sys.stderr, flush=True)
    middle = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    wire_s = nbytes / cables.bytes_per_s(options.rate)  # two ranks: every byte crosses each way once
    bound = max(middle["computing"], wire_s)
    hidden = (middle["computing"] + wire_s - middle["overlapped"]) / min(middle["computing"], wire_s)
    ratio = statistics.median(one["ddp"] / one["overlapped"] for one in rounds)
    lines = [f"# {MODEL['model']}, {options.precision}, over a cable of {options.rate}", "",
             f"{machine.today_here()} for both hosts, one rank and one thread a host, B = "
             f"{MODEL['batch']}, T = {MODEL['length']}. Medians of {options.repeats} interleaved repeats.",
             f"Command: `python tests/bench/ddp/over_a_link.py --rate {options.rate} --precision {options.precision}`", "",
             "| | s |", "|---|--:|",
             f"| a step over a cable without a limit | {middle['computing']:.3f} |",
             f"| all-reduces of a step at the rate of the cable | {wire_s:.3f} |",
             f"| a step, `--overlap on` | {middle['overlapped']:.3f} |",
             f"| a step, `--overlap off` | {middle['not overlapped']:.3f} |",
             f"| a step of PyTorch DDP | {middle['ddp']:.3f} |", "",
             f"Step over the longer of computing and communicating: {middle['overlapped'] / bound:.2f}. Of what can be hidden, "
             f"{100 * min(hidden, 1):.0f} % is. Against DDP {ratio:.2f}x."]
    print("\n".join(lines))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
