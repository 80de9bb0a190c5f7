"""A training of four ranks over two hosts is the training of four ranks of one host, and goes on where it was stopped.

Skipped (77) where this user may not make namespaces.
"""
import os
import re
import sys

from namespaces import ROOT, hosts_and_flags, main, run_inside

sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import check  # noqa: E402
from support import BUILD, TINY, losses, make_data, norms_apart, train  # noqa: E402

STEPS = 10  # buckets are cut anew before the seventh
FLAGS = [*TINY, "--batch-size-per-rank", "2", "--lr", "1e-3", "--device", "cpu", "--drift-every", "1", "--lr-schedule", "constant"]
# What changes no bit over the same hosts.
SAME_BITS = {
    "as it is": [],
    "sharded state": ["--zero", "1"],
    "nothing overlapped": ["--overlap", "off"],
    "small buckets, blocks computed again": ["--bucket-mb", "0.05", "--first-bucket-mb", "0.01", "--recompute", "blocks"],
}
NARROW = {
    "gradients in bf16": ["--reduce-dtype", "bf16"],
    "bf16 with its moments, loss in parts": ["--precision", "bf16", "--optimizer-state-dtype", "bf16", "--loss-chunks", "3"],
}


def run_over_hosts():
    flags, (run_dir, *own) = hosts_and_flags()
    command = [ROOT / "launch/run", "-np", "4", *flags, "--build", BUILD, "--", "train", "--run-dir", run_dir, *own]
    os.execv(command[0], [str(word) for word in command])


def train_over_hosts(scratch, run_dir, flags):
    """What it said."""
    code, said = run_inside(scratch, "22", [run_dir, *map(str, flags)])
    check(code == 0, f"{run_dir.name}: ended with {code}\n{said}")
    return said


def check_variant(scratch, data, name, flags, tolerance):
    """Sums over hosts have another order than those of a host: the last bits differ, those of bf16 more. (Losses, what was said.)"""
    folder = scratch / name.replace(" ", "-")
    folder.mkdir()
    all_flags = [*FLAGS, "--data", data, "--steps", STEPS, *flags]
    said = train_over_hosts(scratch, folder / "two-hosts", all_flags)
    train(4, folder / "one-host", all_flags)
    apart, together = losses(folder / "two-hosts"), losses(folder / "one-host")
    check(len(together) == STEPS and together[-1] < together[0], f"{name}: the loss does not fall: {together}")
    far = [abs(a - b) / b for a, b in zip(apart, together, strict=True)]
    check(max(far) <= tolerance, f"{name}: two hosts {apart}, one {together}")
    norms = norms_apart(folder / "two-hosts", folder / "one-host")
    check(norms <= 10 * tolerance, f"{name}: norms of gradients differ by {norms} of them")
    return apart, said


def check_resumed(scratch, data, whole):
    run_dir = scratch / "resumed"
    flags = [*FLAGS, "--data", data, "--checkpoint-every", STEPS // 2]
    train_over_hosts(scratch, run_dir, [*flags, "--steps", STEPS // 2])
    train_over_hosts(scratch, run_dir, [*flags, "--steps", STEPS, "--resume", "auto"])
    check(losses(run_dir) == whole, f"stopped and resumed: {losses(run_dir)}, in one: {whole}")


def test_two_hosts_train_as_one(scratch):
    data = make_data(scratch / "data")
    found = {name: check_variant(scratch, data, name, flags, 1e-5) for name, flags in SAME_BITS.items()}
    whole, said = found["as it is"]
    check(re.search("buckets: [0-9]+ instead of [0-9]+", said), f"no buckets were cut anew\n{said}")
    for name, (apart, _) in found.items():
        check(apart == whole, f"{name}: {apart}, as it is: {whole}")
    for name, flags in NARROW.items():
        check_variant(scratch, data, name, flags, 5e-3)
    check_resumed(scratch, data, whole)


main(run_over_hosts, test_two_hosts_train_as_one)
