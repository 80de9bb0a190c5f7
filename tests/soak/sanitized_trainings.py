"""Trainings of two ranks with a program that is built with sanitizers: the ways through the program that tests of its parts do not
take. Called by tests/soak/sanitizers; a report of a sanitizer fails it, whatever the exit code."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch/training"))
import support  # noqa: E402
from support import BINARY, SMALL, check, checkpoint, losses, make_data, run, workspace  # noqa: E402

RANKS, KILLED, NUMERICS = 2, 137, 5
REPORT = re.compile(r"ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer")
trainings = 0


def clean(ranks, command, expect=0):
    output = run(ranks, command, expect)
    check(not REPORT.search(output), f"a report of a sanitizer from {' '.join(map(str, command))}\n{output}")
    return output


def train(run_dir, flags, expect=0):
    global trainings
    trainings += 1
    return clean(RANKS, [BINARY, "train", "--run-dir", run_dir, *flags], expect)


def train_all_ways(root, data):
    flags = SMALL[:-2] + ["--data", str(data), "--batch-size-per-rank", "4", "--steps", "8", "--checkpoint-every", "4",
                         "--lr-schedule", "constant", "--eval-every", "4", "--eval-tokens", "2048"]
    train(root / "whole", flags)
    train(root / "killed", flags + ["--inject", "kill:rank=1,step=6"], expect=KILLED)
    train(root / "killed", flags + ["--resume", "auto"])
    check(losses(root / "killed") == losses(root / "whole"), "other losses after a kill")
    train(root / "killed-saving", flags + ["--inject", "kill:rank=0,step=4,at=commit"], expect=KILLED)
    train(root / "rollback", flags + ["--nan-policy", "rollback", "--inject", "nan:rank=1,step=6"])
    train(root / "stopped", flags + ["--inject", "nan:rank=1,step=6"], expect=NUMERICS)
    for name, more in {"zero": ["--zero", "1"], "messages": ["--shared-memory", "off"], "slices": ["--shared-memory", "off", "--zero", "1"],
                       "recompute": ["--recompute", "blocks", "--dropout", "0.1"], "narrow": ["--optimizer-state-dtype", "bf16"],
                       "bf16": ["--precision", "bf16"],
                       "plain": ["--baseline"], "accumulated": ["--grad-accumulation", "2"],
                       "sgd": ["--algorithm", "sgd"],
                       "profiled": ["--record", "on", "--profile", "wait=2,warmup=1,active=2,repeat=1", "--profile-shapes"]}.items():
        train(root / name, flags + more)
    train(root / "mlp", ["mlp" if word == "gpt2-tiny" else word for word in flags])
    clean(1, [BINARY, "generate", "--checkpoint", checkpoint(root / "whole", 8), "--prompt", "int main", "--tokens", "20"])
    clean(RANKS, [BINARY, "train", "--run-dir", root / "never", "--dry-run", *flags])


def main():
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    # What Open MPI never gives back is its own affair.
    os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
    support.TIMEOUT_S = 600
    with workspace() as folder:
        root = pathlib.Path(folder)
        train_all_ways(root, make_data(root / "data"))
    print(f"{trainings} trainings of {RANKS} ranks, no report of a sanitizer")


main()
