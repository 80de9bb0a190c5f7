"""The quickstart in a clone that has neither data nor runs, with a tiny model and what is installed already."""
import json
import os
import shutil
import signal
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from support import BINARY, BUILD, ROOT, check, completed, environment, running, wait_until, workspace  # noqa: E402

CONFIG = """model = gpt2-tiny
sequence-length = 32
batch-size-per-rank = 2
threads = 1
precision = bf16
steps = 20
eval-every = 10
eval-tokens = 512
checkpoint-every = 0
"""
WORDS = "template <typename T> struct Box { T value = {}; }; inline int next(int i) { return i + 1; }\n"


def make_clone(clone):
    """As git leaves it, but for the build, and a set-up that has nothing to do."""
    (clone / "build").mkdir(parents=True)
    (clone / "build/release").symlink_to(BUILD)
    (clone / "build/env").symlink_to(ROOT / "build/env")
    (clone / "launch").mkdir()
    for path in (ROOT / "launch").iterdir():
        if path.name not in ("setup", "quickstart"):
            (clone / "launch" / path.name).symlink_to(path)
    shutil.copy(ROOT / "launch/quickstart", clone / "launch/quickstart")  # its own folder says where the clone is
    (clone / "launch/setup").write_text("#!/bin/sh\n")
    (clone / "launch/setup").chmod(0o755)
    (clone / "examples/gpt2-mini").mkdir(parents=True)
    (clone / "examples/gpt2-mini/train.cfg").write_text(CONFIG)


def make_corpus(clone):
    """In place of the headers of Boost, which take half a minute."""
    source = clone / "source"
    source.mkdir()
    for number in range(40):
        (source / f"{number}.hpp").write_text(WORDS * 20)
    subprocess.run([BINARY, "prepare", "--input", source, "--include", "*.hpp", "--val-fraction", "0.2", "--output", clone / "data/quickstart"],
                   env=environment(), check=True, stdout=subprocess.DEVNULL)


def check_stop(clone, number, ask):
    """Asked while the pairs run: what it has started stops, too."""
    with running([clone / "launch/quickstart", "--ranks", "2", "--baseline-steps", "100000", "--target-val-loss", "50"],
                 environment() | {"XDG_CACHE_HOME": str(clone / "cache")}) as process:
        wait_until(process, lambda: list(clone.glob("runs/*/runs/*/metrics.jsonl")), "a run begins")
        ask(process.pid, number)
        output, _ = process.communicate(timeout=120)  # the ranks hold the pipe, too: its end says that they are gone
    check(process.returncode == 75 and "== stopped" in output, f"{number!r}: {process.returncode}\n{output}")
    shutil.rmtree(clone / "runs")


def main():
    with workspace() as name:
        clone = pathlib.Path(name) / "clone"
        make_clone(clone)
        make_corpus(clone)
        check_stop(clone, signal.SIGTERM, os.kill)
        check_stop(clone, signal.SIGINT, os.killpg)  # as a terminal does
        done = completed([clone / "launch/quickstart", "--ranks", "2", "--baseline-steps", "6", "--target-val-loss", "50"], 400,
                         environment() | {"XDG_CACHE_HOME": str(clone / "cache")})
        check(done.returncode == 0 and "ended with exit code" not in done.stdout, f"{done.returncode}\n{done.stdout}")
        page = clone / done.stdout.strip().splitlines()[-1].split(": ")[-1]
        check(page.name == "report.html" and page.stat().st_size > 100_000, f"no page at {page}\n{done.stdout}")
        report = json.loads(page.with_suffix(".json").read_text())
        check(report["kind"] == "verification" and len(report["blocks"]) == 3, f"unexpected report {report['kind']}")
        check(len((clone / "runs/decisions.jsonl").read_text().splitlines()) == 1, "the decision was not logged")
        check("== the model writes C++\ntemplate <typename" in done.stdout, f"nothing was generated\n{done.stdout}")


if __name__ == "__main__":
    main()
