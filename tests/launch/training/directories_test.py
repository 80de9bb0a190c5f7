"""Which run directory a run may write to: its own, or a fresh one that is writable and that nobody else uses."""

import json
import os
import pathlib
import shutil

from support import (BINARY, TINY, check, checkpoint, environment, expect, losses, make_data, messages_of, metrics, mpirun, run_command,
                     running, train, wait_for_step, workspace)

OTHER, CONFIG, CHECKPOINT = 1, 2, 4
LAST = 150  # step of a run that something happens to: it takes eight seconds, and logs are synced every five


def check_resume_elsewhere(root, base):
    """A checkpoint of another run starts a fresh directory, or the directory it comes from, and no other."""
    train(2, root / "a", base + ["--steps", "3"])
    train(2, root / "b", base + ["--steps", "3", "--seed", "7"])
    before = (root / "a/metrics.jsonl").read_bytes(), (root / "a/config.cfg").read_bytes()
    for path in (root / "b", checkpoint(root / "b", 3)):
        for ranks in (1, 2):
            expect(CONFIG, ["--resume", str(root / "a"), "step_00000003", "new --run-dir", "--resume auto"], ranks,
                   base + ["--steps", "5", "--run-dir", str(root / "a"), "--resume", str(path)])
    check(before == ((root / "a/metrics.jsonl").read_bytes(), (root / "a/config.cfg").read_bytes()),
          "a refused run has written into the run directory")

    train(2, root / "fresh", base + ["--steps", "5", "--resume", str(root / "b")])
    check([line["step"] for line in metrics(root / "fresh")] == [4, 5], f"not resumed: {metrics(root / 'fresh')}")
    train(2, root / "b", base + ["--steps", "5", "--resume", str(checkpoint(root / "b", 3))])
    check(losses(root / "b")[3:] == losses(root / "fresh"), "one checkpoint, two continuations")


def check_start_again(root, base):
    """A supervised run that failed before its first save starts from the same checkpoint of another run again; by hand that is refused."""
    base = base + ["--run-dir", str(root / "again"), "--resume", str(root / "b"), "--steps", "8"]
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    run_command(mpirun(2, [BINARY, "train", *base, "--inject", "throw:step=7"]), OTHER)
    expect(CONFIG, ["is no checkpoint of --run-dir"], 2, base)
    os.environ["SIDESTREAM_ATTEMPT"] = "2"
    run_command(mpirun(2, [BINARY, "train", *base]))
    del os.environ["SIDESTREAM_ATTEMPT"]
    check([line["step"] for line in metrics(root / "again")] == [6, 7, 8], f"{metrics(root / 'again')}")


def check_unwritable(root, base):
    for ranks in (1, 2):
        expect(CONFIG, ["--run-dir", "/proc/sidestream-run"], ranks, base + ["--run-dir", "/proc/sidestream-run"])
    if os.getuid() == 0:  # who may write everywhere, but not to a read-only file system: file_systems_test
        return
    folder = root / "read-only"
    folder.mkdir(mode=0o555)
    for ranks in (1, 2):
        for path in (str(folder), f"{folder}/inside"):
            expect(CONFIG, ["--run-dir", path], ranks, base + ["--run-dir", path])


def check_in_use(root, base):
    """A second run of two ranks beside one that trains: refused, and the first one does not notice."""
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    slow = ["--inject", "slow:rank=0,step=1,steps=2000,ms=50"]  # 100 s on any machine, though it is asked to end long before
    flags = base + ["--steps", "2000", "--run-dir", str(root / "shared"), *slow]
    with running(mpirun(2, [BINARY, "train", *flags]), environment()) as first:
        wait_for_step(first, root / "shared", 1)
        expect(CONFIG, ["--run-dir", str(root / "shared"), "in use by process"], 2, flags + ["--resume", "auto"])
        check(first.poll() is None, "the second run was to meet the first one")


def train_while(root, name, base, expected, happens):
    """A run in whose middle something happens to its directory: its output."""
    run_dir = root / name
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    flags = base + ["--steps", str(LAST), "--run-dir", str(run_dir), "--inject", f"slow:rank=0,step=1,steps={LAST},ms=50"]
    with running(mpirun(2, [BINARY, "train", *flags]), environment()) as ranks:
        wait_for_step(ranks, run_dir, 5)
        happens(run_dir)
        output, _ = ranks.communicate(timeout=120)
    check(ranks.returncode == expected, f"{name}: {ranks.returncode}\n{output}")
    return output


def remove(run_dir):
    """At once: nothing can be written into it while it goes."""
    gone = run_dir.with_name(f"{run_dir.name}.gone")
    run_dir.rename(gone)
    shutil.rmtree(gone)


def check_vanished(root, base):
    """A run directory that vanishes in the middle is made again, with a word, and the run goes on in it."""
    for name, happens in (("moved", lambda run_dir: run_dir.rename(root / "elsewhere")), ("removed", remove)):
        output = train_while(root, name, base, 0, happens)
        check(output.count(f"--run-dir: {root / name} has gone in the middle of the run") == 1, output)
        train(2, root / name, base + ["--steps", str(LAST + 2), "--resume", "auto"])
    check([line["step"] for line in metrics(root / "elsewhere")] == list(range(1, LAST + 1)), "metrics are where their file is")
    check([line["step"] for line in metrics(root / "moved")] == [LAST + 1, LAST + 2], metrics(root / "moved"))
    steps = [line["step"] for line in metrics(root / "removed")]  # those of before went with it
    check(5 < steps[0] < LAST and steps == list(range(steps[0], LAST + 3)), f"{steps}")
    account = json.loads((root / "removed/run.json").read_text())["ettr_account"]
    check(account["starts"] == 2 and account["productive_s"] > 0 and account["wall_s"] > account["productive_s"], f"the new account: {account}")


def content_of(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != "lock"}


def check_replaced(root, base):
    """Where another run's directory has come in the place of its own, a run writes nothing of its own into it, and ends."""
    for name, remove_own in (("of-moved", lambda run_dir: run_dir.rename(root / "aside")), ("of-removed", remove)):
        other = root / f"other-{name}"
        train(2, other, base + ["--steps", "3"])
        before = content_of(other)

        def replace(run_dir):
            remove_own(run_dir)
            other.rename(run_dir)

        output = train_while(root, name, base, CHECKPOINT, replace)
        told = [line for line in messages_of(output) if "holds another run: nothing is saved there" in line and "warning" not in line]
        check(len(told) == 1, output)
        after = {other / file.relative_to(root / name): content for file, content in content_of(root / name).items()
                 if "flight" not in file.parts}
        check(after == before, f"{name}: another run's files were touched: {sorted(after)} instead of {sorted(before)}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        base = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "2", "--lr-schedule", "constant"]
        check_resume_elsewhere(root, base)
        check_start_again(root, base)
        check_unwritable(root, base)
        check_in_use(root, base)
        check_vanished(root, base)
        check_replaced(root, base)


main()
