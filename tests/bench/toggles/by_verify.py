"""What `sidestream verify` says of each flag of a training on CPU ranks: the flag off against all as by default.

    build/env/bin/python tests/bench/toggles/by_verify.py [--blocks 4] [--only overlap zero] [--output FILE]

A row is one verification: blocks of a run without and a run with the optimisation, in turns, the interval of its verdict, and whether
the losses stay within what another seed changes. Each takes 2 x blocks runs of gpt2-mini.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402

# Off, and what both sides need so that it is seen at all.
FLAGS = {
    "overlap": ("--overlap off", ""),
    "bucketing": ("--bucketing off", ""),
    "shared-memory": ("--shared-memory off", ""),
    "fused-optimizer": ("--fused-optimizer off --zero 0", ""),
    "zero": ("--zero 0", ""),
    "gradient-as-bucket-view": ("--gradient-as-bucket-view off", ""),
    "fused-ops": ("--fused-ops off", ""),
    "loss-chunks": ("--loss-chunks 1", ""),
    "loader-workers": ("--loader-workers 0", ""),
    "precision": ("--precision fp32", ""),
    "reduce-dtype": ("--reduce-dtype fp32", ""),
    "flush-denormals": ("--flush-denormals off", ""),
    "keep-memory": ("--keep-memory off", ""),
    "huge-pages": ("--huge-pages off", ""),
    "pin-threads": ("--pin-threads off", ""),
}
MODEL = "--model gpt2-mini --data synthetic --device cpu --sequence-length 256 --batch-size-per-rank 8 --precision bf16"


def verification(flag, args, folder):
    """The report.json of one flag. Exit codes above 9 are judgements, and in the report."""
    off, both = FLAGS[flag]
    common = MODEL if flag != "precision" else MODEL.replace(" --precision bf16", "")
    new = "--precision bf16" if flag == "precision" else ""
    config = folder / "empty.cfg"
    config.write_text("# all on the command line\n", encoding="utf-8")
    words = [ROOT / "build/release/sidestream", "verify", "--config", config, "--np", args.ranks, "--base", off, "--new", new,
             "--common", f"{common} {both}".strip(), "--blocks", args.blocks, "--steps", args.steps, "--warm-up", args.warm_up,
             "--profile", "off", "--prove", "off", "--out", folder / flag]
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    report = folder / flag / "report.json"
    if (done.returncode != 0 and done.returncode < 10) or not report.exists():
        sys.exit(f"{flag}: exit code {done.returncode}\n{done.stdout}")
    found = json.loads(report.read_text(encoding="utf-8"))
    if "failure" in found:
        sys.exit(f"{flag}: exit code {done.returncode}\n{done.stdout}")
    return found


def row(flag, report):
    step = report["step_time"]
    off, both = FLAGS[flag]
    speed = f"{step['speed_up']:.3f}x ({step['speed_up_low']:.3f} to {step['speed_up_high']:.3f})" if step["speed_up"] else "-"
    beside = f", with `{both}`" if both else ""
    return (f"| `{off}`{beside} | {step['base_ms']:.0f} | {step['new_ms']:.0f} | {speed} | {step['verdict']} | "
            f"{report['convergence']['verdict']} |")


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
             "| off | step without, ms | step with it, ms | faster by | verdict | learning |", "|---|--:|--:|--:|---|---|"]
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
