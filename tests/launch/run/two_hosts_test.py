"""A training of four ranks over two hosts is the training of four ranks of one host, and goes on where it was stopped.

Skipped (77) where this user may not make namespaces.
"""
import os
import sys

from namespaces import ROOT, hosts_and_flags, main, run_inside

sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import check  # noqa: E402
from support import BUILD, TINY, losses, make_data, norms_apart, train  # noqa: E402

STEPS = 10
FLAGS = [*TINY, "--batch-size-per-rank", "2", "--lr", "1e-3", "--device", "cpu", "--drift-every", "1"]
# Sums over hosts have another order than those of a host: the last bits differ, those of bf16 more.
VARIANTS = {
    "as it is": ([], 1e-5),
    "sharded state": (["--zero", "1"], 1e-5),
    "nothing overlapped": (["--overlap", "off"], 1e-5),
    "small buckets": (["--bucket-mb", "0.05", "--first-bucket-mb", "0.01"], 1e-5),
    "bf16": (["--precision", "bf16"], 5e-3),
}


def run_over_hosts():
    flags, (run_dir, *own) = hosts_and_flags()
    command = [ROOT / "launch/run", "-np", "4", *flags, "--build", BUILD, "--", "train", "--run-dir", run_dir, *own]
    os.execv(command[0], [str(word) for word in command])


def train_over_hosts(scratch, run_dir, flags):
    code, said = run_inside(scratch, "22", [run_dir, *map(str, flags)])
    check(code == 0, f"{run_dir.name}: ended with {code}\n{said}")
    return losses(run_dir)


def check_variant(scratch, data, name, flags, tolerance):
    folder = scratch / name.replace(" ", "-")
    folder.mkdir()
    all_flags = [*FLAGS, "--data", data, "--steps", STEPS, *flags]
    apart = train_over_hosts(scratch, folder / "two-hosts", all_flags)
    train(4, folder / "one-host", all_flags)
    together = losses(folder / "one-host")
    check(len(together) == STEPS and together[-1] < together[0], f"{name}: the loss does not fall: {together}")
    far = [abs(a - b) / b for a, b in zip(apart, together, strict=True)]
    check(max(far) <= tolerance, f"{name}: two hosts {apart}, one {together}")
    norms = norms_apart(folder / "two-hosts", folder / "one-host")
    check(norms <= 10 * tolerance, f"{name}: norms of gradients differ by {norms} of them")
    return apart


def check_resumed(scratch, data, whole):
    run_dir = scratch / "resumed"
    flags = [*FLAGS, "--data", data, "--checkpoint-every", STEPS // 2, "--lr-schedule", "constant"]
    train_over_hosts(scratch, run_dir, [*flags, "--steps", STEPS // 2])
    found = train_over_hosts(scratch, run_dir, [*flags, "--steps", STEPS, "--resume", "auto"])
    check(found == whole, f"stopped and resumed: {found}, in one: {whole}")


def test_two_hosts_train_as_one(scratch):
    data = make_data(scratch / "data")
    for name, (flags, tolerance) in VARIANTS.items():
        check_variant(scratch, data, name, flags, tolerance)
    whole = train_over_hosts(scratch, scratch / "whole", [*FLAGS, "--data", data, "--steps", STEPS, "--lr-schedule", "constant"])
    check_resumed(scratch, data, whole)


main(run_over_hosts, test_two_hosts_train_as_one)
