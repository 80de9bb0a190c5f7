"""Everything that needs a GPU: speed against PyTorch and llm.c, MFU, the optimizer's share of the bandwidth, each toggle, the tests.

    build/env/bin/python tests/bench/gpu/measure.py [--rows 124m optimizer] [--llmc DIR] [--minutes 8] [--repeats 3] [--output DIR]
    build/env/bin/python tests/bench/gpu/measure.py --device cpu --quick --output DIR     (tries the script itself)

Every measurement is in DIR/gpu.json and DIR/gpu.md (tests/bench/results) as soon as it is taken, with the options of the calls that
measured its row; what the time did not suffice for is named, and the next call with the same DIR goes on there. --llmc: a folder of llm.c with train_gpt2cu built. A row that fails is
reported, and the others are measured. Exit code 1: something failed; 2: there is no GPU here.
"""
import argparse
import dataclasses
import importlib.util
import pathlib
import shutil
import sys

import devices
import optimizer
import suites
from compare import FULL, compare, sides_of
from results import Results
from rows import ROWS, possible, small
from session import Failed, NoTime, Session
from sides import ROOT

OTHERS = ("optimizer", "tests")


def measure(session, name, found, save, options):
    if name == "tests":
        return suites.measure(session, found, save)
    if name == "optimizer":
        if session.device != "cuda":
            raise Failed("its kernels are those of a GPU")
        return optimizer.measure(session, found, options.repeats, save)
    row = possible(ROWS[name], session.device, session.llmc is not None)
    if options.sides:
        unknown = set(options.sides) - {side.name for side in row.sides}
        if unknown:
            raise Failed(f"{name} has no side {', '.join(sorted(unknown))}; it has {', '.join(side.name for side in row.sides)}")
        found["sides"] = sides_of(row)
        row = dataclasses.replace(row, sides=tuple(side for side in row.sides if side.name in options.sides))
    if options.batches:
        row = dataclasses.replace(row, batches=tuple(options.batches))
    compare(session, small(row) if options.quick else row, found, options.repeats, save, options.every)


def measure_row(session, results, name, options):
    """Whether nothing failed."""
    found = results.row(name, options.again)
    for key in ("left_out", "failed"):
        found.pop(key, None)

    def save():  # from the first sample on: a call that had no time has measured nothing
        results.note(found, sys.argv[1:])
        results.save()

    try:
        measure(session, name, found, save, options)
    except NoTime:
        found["left_out"] = "the time did not suffice; call again"
    except Exception as error:  # whatever it is, the other rows are measured
        found.setdefault("failed", {})["row"] = f"{type(error).__name__}: {error}"
    results.save()
    for what, text in found.get("failed", {}).items():
        print(f"{name}, {what}: {text}", file=sys.stderr, flush=True)
    return not found.get("failed")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rows", nargs="+", choices=(*ROWS, *OTHERS), default=(*ROWS, *OTHERS))
    parser.add_argument("--batches", nargs="+", type=int, help="these, instead of a search")
    parser.add_argument("--sides", nargs="+", help="only these of a row")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--every", type=int, default=FULL["every"],
                        help="steps of each of the four groups of a measurement, the first its warm-up")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--llmc", type=pathlib.Path, help="folder of llm.c, with train_gpt2cu built")
    parser.add_argument("--again", action="store_true", help="forget what was measured of these rows before")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests/bench/results")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="a tiny model")
    return parser.parse_args()


def main():
    options = parse()
    if importlib.util.find_spec("torch") is None:
        print("measure.py: this Python has no torch: call it with build/env/bin/python", file=sys.stderr)
        sys.exit(2)
    device = devices.describe(options.device, options.build.resolve())
    if device is None:
        print("measure.py: PyTorch sees no GPU here, and all of this needs one (--device cpu --quick --output DIR tries the script itself)",
              file=sys.stderr)
        sys.exit(2)
    if options.llmc and not (options.llmc / "train_gpt2cu").exists():
        sys.exit(f"{options.llmc}/train_gpt2cu is not there: build llm.c as its README says (make train_gpt2cu)")
    session = Session(options.build.resolve(), options.device, options.minutes, options.llmc)
    results = Results(options.output, device)
    try:
        good = [measure_row(session, results, name, options) for name in options.rows]
    finally:
        shutil.rmtree(session.folder, ignore_errors=True)
    print(results.text.read_text(encoding="utf-8"))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
