"""What `sidestream verify` says of each flag of a training on CPU ranks: without the optimisation against with it, all others as by
default.

    build/env/bin/python tests/bench/toggles/by_verify.py [--blocks 4] [--only overlap zero] [--output FILE]

A row is one verification: blocks of a run without and a run with the optimisation, in turns, the interval of its verdict, whether
the losses stay within what another seed changes, and the median peak of the first rank's memory. Each takes 2 x blocks runs of gpt2-mini.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402


class Sides(typing.NamedTuple):
    """Flags without the optimisation, with it, and of both, so that it is seen at all."""
    base: str
    new: str = ""
    both: str = "--precision bf16"


FLAGS = {
    "overlap": Sides("--overlap off"),
    "bucketing": Sides("--bucketing off"),
    "bucket-mb": Sides("--bucket-mb 25 --first-bucket-mb 1"),  # PyTorch's
    "shared-memory": Sides("--shared-memory off"),
    "fused-optimizer": Sides("--fused-optimizer off --zero 0"),
    "optimizer-state-dtype": Sides("--optimizer-state-dtype fp32", "--optimizer-state-dtype bf16"),
    "zero": Sides("--zero 0"),
    "gradient-as-bucket-view": Sides("--gradient-as-bucket-view off"),
    "fused-ops": Sides("--fused-ops off"),
    "loss-chunks": Sides("--loss-chunks 1"),
    **{f"recompute-{level}": Sides("--recompute none", f"--recompute {level}") for level in ("activations", "mlp", "attention", "blocks")},
    "loader-workers": Sides("--loader-workers 0"),
    "precision": Sides("--precision fp32", "--precision bf16", both=""),
    "reduce-dtype": Sides("--reduce-dtype fp32"),
    "flush-denormals": Sides("--flush-denormals off"),
    "keep-memory": Sides("--keep-memory off"),
    "huge-pages": Sides("--huge-pages off"),
    "pin-threads": Sides("--pin-threads off"),
}
NEEDS_A_GPU = ("packed-attention", "tune-products", "offload", "cuda-graph", "nccl-windows", "nccl-ctas", "late-loss", "pin-memory")
NO_RUN_SAVES = ("async-checkpoints",)  # under verify; versus_baseline.py has them save
MODEL = "--model gpt2-mini --data synthetic --device cpu --sequence-length 256 --batch-size-per-rank 8"


def verification(flag, args, folder):
    """The report.json of one flag. Exit codes above 9 are judgements, and in the report."""
    sides = FLAGS[flag]
    config = folder / "empty.cfg"
    config.write_text("# all on the command line\n", encoding="utf-8")
    words = [ROOT / "build/release/sidestream", "verify", "--config", config, "--np", args.ranks, "--base", sides.base,
             "--new", sides.new, "--common", f"{MODEL} {sides.both}".strip(), "--blocks", args.blocks,
             "--steps", args.steps, "--warm-up", args.warm_up, "--profile", "off", "--prove", "off", "--out", folder / flag]
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    report = folder / flag / "report.json"
    if (done.returncode != 0 and done.returncode < 10) or not report.exists():
        sys.exit(f"{flag}: exit code {done.returncode}\n{done.stdout}")
    found = json.loads(report.read_text(encoding="utf-8"))
    if "failure" in found:
        sys.exit(f"{flag}: exit code {done.returncode}\n{done.stdout}")
    return found


def row(flag, report):
    step, sides, memory = report["step_time"], FLAGS[flag], report["memory"]
    speed = f"{step['speed_up']:.3f}x ({step['speed_up_low']:.3f} to {step['speed_up_high']:.3f})" if step["speed_up"] else "-"
    mib = [f"{memory[side] / 2**20:.0f} MiB" if memory else "-" for side in ("base_bytes", "new_bytes")]
    return (f"| `{sides.base}` | {f'`{sides.new}`' if sides.new else 'default'} | {step['base_ms']:.0f} | {step['new_ms']:.0f} | "
            f"{speed} | {step['verdict']} | {report['convergence']['verdict']} | {mib[0]} | {mib[1]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=FLAGS, nargs="*", metavar="FLAG")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    only = f" --only {' '.join(args.only)}" if args.only else ""
    lines = [f"{machine.today_here()}, {args.ranks} ranks, gpt2-mini, bf16, B = 8, T = 256, {args.blocks} blocks; intervals of 95 %.",
             f"Command: `python tests/bench/toggles/by_verify.py --blocks {args.blocks}{only}`", "",
             "| without | with | step without, ms | step with it, ms | faster by | verdict | learning | memory without | memory with it |",
             "|---|---|--:|--:|--:|---|---|--:|--:|"]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for flag in args.only or FLAGS:
            lines.append(row(flag, verification(flag, args, folder)))
            shutil.rmtree(folder / flag)
            print(lines[-1], flush=True)
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
