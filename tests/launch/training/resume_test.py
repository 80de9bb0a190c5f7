"""Killed at a random step and resumed: losses and final weights as of the run that was not killed."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import time

from support import (BINARY, TINY, check, check_near, checkpoint, environment, expect, losses, losses_apart, make_data, metrics,
                     mpirun, processes_of_ranks, running, train, wait_for_step, with_own_shared_memory, workspace)

CHECKPOINT, STEPS = 4, 30


def lines_in(path):
    return path.read_text().count("\n") if path.exists() else 0


def kill_after(ranks, run_dir, flags, step):
    """Starts a run, waits until it has logged `step` and kills all of it without warning."""
    command = with_own_shared_memory(mpirun(ranks, [BINARY, "train", "--run-dir", run_dir, *flags]))  # Open MPI's is not removed
    with running(command, environment()) as process:
        wait_for_step(process, run_dir, 1)
        # Now, for steps take milliseconds, and looking for processes takes longer on a busy machine.
        found = processes_of_ranks(run_dir)
        wait_for_step(process, run_dir, step)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while any(map(has_files, found)):  # the lock goes with them
        check(time.monotonic() < deadline, f"{found}: killed, and still there")
        time.sleep(0.01)


def has_files(pid):
    """A process that was killed keeps them until it is a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def check_kill(root, ranks, precision, seed):
    name = f"{ranks}-{precision}"
    flags = TINY + ["--data", str(root / "data"), "--batch-size-per-rank", "4", "--lr", "1e-3", "--steps", str(STEPS),
                    "--precision", precision, "--dropout", "0.1", "--checkpoint-every", "4", "--keep-checkpoints", "2"]
    whole, killed = root / f"whole-{name}", root / f"killed-{name}"
    train(ranks, whole, flags)
    step = random.Random(seed).randint(5, STEPS - 12)
    kill_after(ranks, killed, flags + ["--resume", "auto"], step)
    check(lines_in(killed / "metrics.jsonl") < STEPS, "the run ended before it could be killed")
    train(ranks, killed, flags + ["--resume", "auto", "--zero", "0"])  # the same state, kept by every rank
    check([line["step"] for line in metrics(killed)] == list(range(1, STEPS + 1)), "metrics.jsonl repeats or lacks steps")
    check(losses(killed) == losses(whole), f"{name}: losses differ after a kill at step {step}")
    weights = [(checkpoint(run, STEPS) / "model.safetensors").read_bytes() for run in (whole, killed)]
    check(weights[0] == weights[1], f"{name}: final weights differ after a kill at step {step}")


# Ranks before and after, and how each side keeps the optimizer's state: shared, each rank all of it (0), sharded (1).
WORLDS = [((2, []), (1, [])), ((1, []), (3, ["--zero", "1"])), ((3, ["--zero", "1"]), (2, ["--zero", "0"])), ((2, ["--zero", "0"]), (2, ["--zero", "1"]))]
GLOBAL_BATCH = 6


def check_other_worlds(root):
    """Saved by some ranks, resumed by others with the same global batch: the same samples, nearly the same losses."""
    common = TINY + ["--data", str(root / "data"), "--lr", "1e-3", "--lr-schedule", "constant", "--batch-size-per-rank"]
    train(1, root / "one", common + [str(GLOBAL_BATCH), "--steps", "16"])
    for number, ((before, kept_before), (after, kept_after)) in enumerate(WORLDS):
        run_dir = root / f"worlds-{number}"
        train(before, run_dir, common + [str(GLOBAL_BATCH // before), "--steps", "8", *kept_before])
        train(after, run_dir, common + [str(GLOBAL_BATCH // after), "--steps", "16", "--resume", "auto", *kept_after])
        check_near(f"{before} ranks {kept_before}, resumed by {after} {kept_after}, and one", run_dir, root / "one", 1e-5)


def check_other_length(root):
    """With samples of another length the run goes on behind as many tokens, and says what becomes of their order."""
    flags = TINY + ["--data", str(root / "data"), "--lr-schedule", "constant", "--batch-size-per-rank", "4"]
    at = flags.index("--sequence-length") + 1
    train(1, root / "length", flags + ["--steps", "6"])
    for steps, length, samples in (("7", "16", 6 * 4 * 2), ("8", "16", None), ("9", "24", -(-(6 * 32 + 2 * 16) * 4 // 24))):
        flags[at] = length
        output = train(1, root / "length", flags + ["--steps", steps, "--resume", "auto"])
        told = f"the run goes on behind as many tokens, with sample {samples}; samples of this length come in an order of their own"
        check((told in output) == (samples is not None) == ("behind as many tokens" in output), f"{samples}\n{output}")
        found = json.loads((checkpoint(root / "length", int(steps)) / "manifest.json").read_text())["training"]
        if samples is not None:
            check(found["samples"] == samples + 4 and found["sequence_length"] == int(length), found)


def check_other_precision(root):
    """fp32, then bf16, then fp32: checkpoints keep weights and moments in fp32, so nothing is rounded in between, and the log says it."""
    flags = TINY + ["--data", str(root / "data"), "--lr", "1e-3", "--lr-schedule", "constant", "--batch-size-per-rank", "4"]
    train(2, root / "fp32", flags + ["--steps", "18"])
    run_dir = root / "precisions"
    for steps, precision in ((6, "fp32"), (12, "bf16"), (18, "fp32")):
        output = train(2, run_dir, flags + ["--steps", str(steps), "--precision", precision, "--resume", "auto"])
        told = f"other than in the run so far: precision = {precision}" in output
        check(told == (steps > 6), f"to {precision} at step {steps}:\n{output}")
        model = (checkpoint(run_dir, steps) / "model.safetensors").read_bytes()
        header = json.loads(model[8:8 + int.from_bytes(model[:8], "little")])
        check({tensor["dtype"] for name, tensor in header.items() if name != "__metadata__"} == {"F32"}, f"{precision}: not kept in fp32")
    check(losses(run_dir)[:6] == losses(root / "fp32")[:6], "other losses before anything was changed")
    apart = losses_apart(run_dir, root / "fp32")
    check(0 < apart < 0.03, f"losses differ by {apart}")


def steps_in(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def check_damaged_newest(root):
    """The newest checkpoint is damaged: training goes on from the one before, saves, and keeps what it saves."""
    flags = TINY + ["--data", str(root / "data"), "--lr-schedule", "constant", "--checkpoint-every", "2", "--keep-checkpoints", "2"]
    train(2, root / "sound", flags + ["--steps", "12"])
    train(2, root / "damaged", flags + ["--steps", "8"])
    model = checkpoint(root / "damaged", 8) / "model.safetensors"
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)
    output = train(2, root / "damaged", flags + ["--steps", "12", "--resume", "auto"])
    check("skipped checkpoint" in output and "step_00000008.set-aside" in output, output)
    check(losses(root / "damaged") == losses(root / "sound"), "losses differ after a damaged checkpoint")
    check(steps_in(root / "damaged") == ["step_00000008.set-aside", "step_00000010", "step_00000012"],
          f"checkpoints: {steps_in(root / 'damaged')}")


def shorten(file):
    os.truncate(file, file.stat().st_size // 2)


def put_elsewhere(file):
    file.rename(file.parent.parent / file.name)
    file.symlink_to(file.parent.parent / file.name)


DAMAGE = [("model.safetensors", shorten), ("model.safetensors", lambda file: os.truncate(file, 0)), ("model.safetensors", put_elsewhere),
          ("optimizer_00000_of_00001.safetensors", pathlib.Path.unlink), ("manifest.json", pathlib.Path.unlink),
          ("manifest.json", lambda file: os.truncate(file, 0)), ("manifest.json", lambda file: file.write_text(file.read_text().replace('"step": 8', '"step": 9')))]


def check_kinds_of_damage(root):
    """Whatever has happened to the newest checkpoint, the one before is taken, the reason is told, and the losses are the same."""
    flags = TINY + ["--data", str(root / "data"), "--lr-schedule", "constant", "--checkpoint-every", "4", "--keep-checkpoints", "0"]
    train(1, root / "kinds", flags + ["--steps", "8"])
    train(1, root / "kinds-sound", flags + ["--steps", "9"])
    for number, (name, damage) in enumerate(DAMAGE):
        run_dir = shutil.copytree(root / "kinds", root / f"kinds-{number}")
        damage(checkpoint(run_dir, 8) / name)
        output = train(1, run_dir, flags + ["--steps", "9", "--resume", "auto"])
        check(f"skipped checkpoint {checkpoint(run_dir, 8)}" in output and f"resumed from {checkpoint(run_dir, 4)}, step 4" in output, f"{number}, {name}:\n{output}")
        check(losses(run_dir) == losses(root / "kinds-sound"), f"{number}, {name}: other losses")


def check_going_back(root):
    """Resumed from an older checkpoint of the run: the newer ones are set aside, the new work is what goes on."""
    flags = TINY + ["--data", str(root / "data"), "--lr-schedule", "constant", "--checkpoint-every", "2", "--keep-checkpoints", "4"]
    back = root / "back"
    train(1, back, flags + ["--steps", "8"])
    output = train(1, back, flags + ["--steps", "6", "--lr", "2e-3", "--resume", str(checkpoint(back, 2))])
    check("other than in the run so far: lr = 0.002" in output and "other than in the run so far: steps = 6" in output, output)
    check(steps_in(back) == ["step_00000002", "step_00000004", "step_00000004.set-aside", "step_00000006", "step_00000006.set-aside",
                             "step_00000008.set-aside"], f"checkpoints: {steps_in(back)}")
    output = train(1, back, flags + ["--steps", "7", "--lr", "2e-3", "--resume", "auto"])
    check("step_00000006, step 6" in output, f"expected to go on from the new step 6:\n{output}")
    check([line["step"] for line in metrics(back)] == list(range(1, 8)), "metrics.jsonl repeats or lacks steps")
    kept_record, kept_config = (back / "run.json").read_bytes(), (back / "config.cfg").read_bytes()
    output = train(1, back, flags + ["--steps", "5", "--lr", "2e-3", "--resume", "auto"])
    check("nothing is left to train: --steps 5 is not more than the 7 of the checkpoint" in output, output)
    check((kept_record, kept_config) == ((back / "run.json").read_bytes(), (back / "config.cfg").read_bytes()),
          "a call that trained nothing has changed what the run says of itself")
    check("step_00000007" in steps_in(back) and [line["step"] for line in metrics(back)] == list(range(1, 8)), "a run that is done was changed")


def check_what_is_other(root):
    """A setting that is left out, and other tokens under the same path, are told as a changed setting is; so is a broken run.json."""
    data, run_dir = root / "other-data", root / "other"
    shutil.copytree(root / "data", data)
    flags = TINY + ["--data", str(data), "--lr-schedule", "constant", "--checkpoint-every", "0"]
    train(1, run_dir, flags + ["--steps", "2", "--reduce-dtype", "bf16"])
    output = train(1, run_dir, flags + ["--steps", "3", "--resume", "auto"])
    check("other than in the run so far: reduce-dtype is not set any more, it was bf16" in output, output)
    check("expected the tokens of the run so far" not in output, output)
    shard = next(data.glob("*train*.bin"))
    tokens = bytearray(shard.read_bytes())
    tokens[1024:] = bytes(len(tokens) - 1024)  # after the header: token 0 everywhere
    shard.write_bytes(tokens)
    elsewhere = train(1, root / "other-elsewhere", flags + ["--steps", "4", "--lr", "0.01", "--resume", str(checkpoint(run_dir, 3))])
    check(f"warning: --data {data}: expected the tokens of the run so far" in elsewhere, elsewhere)
    check("other than in the run so far: lr = 0.01" in elsewhere and "run-dir" not in elsewhere.split("resumed from")[0], elsewhere)
    output = train(1, run_dir, flags + ["--steps", "4", "--resume", "auto"])
    check(f"warning: --data {data}: expected the tokens of the run so far" in output, output)
    (run_dir / "run.json").write_text("x")
    output = train(1, run_dir, flags + ["--steps", "5", "--resume", "auto"])
    check("run.json" in output and "whether the data is that of the run so far is not known" in output, output)
    flags[flags.index("--threads") + 1] = "70"
    output = train(1, root / "from-a-run", flags + ["--steps", "1", "--init", str(run_dir), "--warmup-steps", "2", "--momentum", "0.5"])
    warned = json.loads((root / "from-a-run/run.json").read_text())["warnings"]
    for words in ("70 threads of a rank on", "--warmup-steps 2 are more than --steps 1", "--momentum changes nothing: it is for --algorithm sgd"):
        check(words in output and sum(words in line for line in warned) == 1, f"{words}\n{output}\n{warned}")
    check((root / "from-a-run/config.cfg").exists(), output)


def check_damaged_config(root):
    """The settings of before cannot be told from those of now: that is said in a line, and training goes on."""
    flags = TINY + ["--data", str(root / "data"), "--lr-schedule", "constant", "--checkpoint-every", "2"]
    run_dir = root / "damaged-config"
    train(1, run_dir, flags + ["--steps", "2"])
    config = run_dir / "config.cfg"
    config.write_bytes(b"\xff\x00 nothing of it\n")
    with open(run_dir / "metrics.jsonl", "a") as file:
        file.write("{damaged}\n")
    output = train(1, run_dir, flags + ["--steps", "4", "--resume", "auto"])
    check(f"warning: {config}: expected the settings of the run so far, found none of them" in output, output)
    check("other than in the run so far" not in output, output)
    check("metrics.jsonl: 1 line is no metrics and is left out" in output, output)
    check([line["step"] for line in metrics(run_dir)] == [1, 2, 3, 4], "metrics.jsonl repeats or lacks steps")
    check("steps = 4" in config.read_text(), "the settings were not written anew")


def check_other_optimizer(root):
    """Refused before anything is written, with the flag; a new run may begin from the weights."""
    flags = TINY + ["--data", str(root / "data"), "--lr-schedule", "constant"]
    run_dir = root / "adamw"
    train(2, run_dir, flags + ["--steps", "2"])
    before = (run_dir / "config.cfg").read_bytes()
    expect(CHECKPOINT, ["expected the optimizer of --algorithm sgd, found that of adamw", "--init"], 2,
           flags + ["--run-dir", str(run_dir), "--resume", "auto", "--steps", "3", "--algorithm", "sgd"])
    check((run_dir / "config.cfg").read_bytes() == before, "a refused run has written its configuration")
    train(2, root / "sgd", flags + ["--steps", "2", "--algorithm", "sgd", "--init", str(checkpoint(run_dir, 2))])
    output = train(2, run_dir, flags + ["--resume", "auto", "--steps", "3", "--grad-accumulation", "2"])
    check("samples a step instead of" in output, output)


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        make_data(root / "data")
        for seed, (ranks, precision) in enumerate([(1, "fp32"), (2, "fp32"), (2, "bf16")]):
            check_kill(root, ranks, precision, int(os.environ.get("SIDESTREAM_TEST_SEED", "7")) + seed)
        check_other_worlds(root)
        check_other_length(root)
        check_other_precision(root)
        check_other_optimizer(root)
        check_damaged_newest(root)
        check_kinds_of_damage(root)
        check_going_back(root)
        check_what_is_other(root)
        check_damaged_config(root)


main()
