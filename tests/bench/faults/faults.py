"""What protection costs and how fast it is: saves beside training, watching all the time, and from a fault to its message.

    build/env/bin/python tests/bench/faults/faults.py [--only saving watching detection] [--repeats 3] [--output FILE]

Faults over two hosts need root and iproute2.
"""
import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "tests/bench")]
import kept  # noqa: E402
import machine  # noqa: E402

import detection  # noqa: E402
import saving  # noqa: E402
import watching  # noqa: E402

SECTIONS = {"saving": saving, "watching": watching, "detection": detection}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100, help="of a run that is watched in every second one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where checkpoints go: the disk that is measured")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    only = "" if args.only == list(SECTIONS) else f" --only {' '.join(args.only)}"
    lines = [f"{machine.today_here()}, {args.ranks} ranks. `tests/bench/faults/faults.py{only} --repeats {args.repeats}`"]
    for name in args.only:
        lines += ["", *SECTIONS[name].section(args)]
    print("\n".join(lines))
    if args.output:
        kept.keep(args.output, "\n".join(lines))


if __name__ == "__main__":
    main()
