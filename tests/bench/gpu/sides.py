"""One measurement of one side: the trainer, PyTorch, or llm.c. Each gives tokens per second, the step and the memory."""
import dataclasses
import json
import pathlib
import shutil
import statistics
import sys

import llmc
from batches import OutOfMemory
from models import SIZES
from session import Failed

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIMIT_S = 150  # of a measurement, torch.compile included
LEAST_S = 8  # with less left none is begun


@dataclasses.dataclass(frozen=True)
class Shape:
    """Steps come in groups of `every`; the first group is the warm-up."""
    model: str
    length: int
    batch: int
    groups: int
    every: int

    def steps(self):
        return self.groups * self.every


@dataclasses.dataclass(frozen=True)
class Side:
    name: str
    kind: str
    flags: tuple = ()
    against: tuple = ()  # sides of the same row that it is compared with


def lines_of(run_dir):
    try:
        text = (run_dir / "metrics.jsonl").read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def micro_steps(flags):
    return int(flags[flags.index("--grad-accumulation") + 1]) if "--grad-accumulation" in flags else 1


def ours(session, shape, flags):
    """The trainer is ended when its metrics suffice, before it saves: a checkpoint of the largest model takes longer than the steps."""
    run_dir = session.folder / "run"
    shutil.rmtree(run_dir, ignore_errors=True)
    command = [session.build / "sidestream", "train", "--run-dir", run_dir, "--device", session.device, "--model", shape.model, "--data",
               "synthetic", "--sequence-length", shape.length, "--batch-size-per-rank", shape.batch, "--steps", 4 * shape.steps(),
               "--log-every", shape.every, "--eval-every", 0, *flags]
    try:
        session.run(command, LIMIT_S, enough=lambda: any(line["step"] >= shape.steps() for line in lines_of(run_dir)),
                    least_s=LEAST_S)
        lines = [line for line in lines_of(run_dir) if shape.every < line["step"] <= shape.steps()]
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)
    step_s = statistics.median(line["batch_cost_s"] for line in lines)
    tokens = shape.batch * shape.length * micro_steps(flags)
    return {"step_ms": 1e3 * step_s, "tokens_per_s": tokens / step_s, "memory_bytes": lines[-1]["memory_bytes"],
            "data_share": statistics.median(line["reader_cost_s"] / line["batch_cost_s"] for line in lines), "loss": lines[-1]["loss"]}


def pytorch_command(session, shape, flags):
    return [sys.executable, ROOT / "tests/bench/gpu/peer.py", "--device", session.device, "--model", shape.model, "--batch", shape.batch,
            "--length", shape.length, "--warmup", shape.every, "--rounds", *flags]


def pytorch(session, shape, flags):
    command = pytorch_command(session, shape, flags)
    session.require_time(LEAST_S)
    try:
        answer = session.peer(command).ask(shape.steps() - shape.every, min(LIMIT_S, session.left_s()))
    except RuntimeError as error:
        session.forget_peer(command)
        session.require_time(0)
        raise Failed(str(error)) from error
    except OutOfMemory:
        session.forget_peer(command)
        raise
    found = json.loads(answer)
    step_ms = statistics.median(found["step_ms"])
    return {"step_ms": step_ms, "tokens_per_s": shape.batch * shape.length / step_ms * 1e3, "memory_bytes": found["memory_bytes"],
            "torch": found["torch"], "loss": found["loss"]}


def start(session, side, shape):
    """What is worth starting before the rounds: compilations go on side by side."""
    if side.kind == "pytorch":
        session.peer(pytorch_command(session, shape, side.flags))


def wait_until_started(session, side, shape):
    if side.kind != "pytorch":
        return
    command = pytorch_command(session, shape, side.flags)
    try:
        session.peer(command).wait_until_ready(min(LIMIT_S, max(0.1, session.left_s())))
    except OutOfMemory:
        session.forget_peer(command)  # perhaps for those beside it only
    except RuntimeError:
        pass  # the measurement meets it again, and reports it


def llm_c(session, shape, flags):
    size = SIZES[shape.model]
    llmc.write_inputs(session.folder, 2 * shape.batch * shape.length + 1, size.vocabulary)
    program = session.llmc.resolve() / "train_gpt2cu"
    output = session.run(llmc.command(program, session.folder, shape, size.layers, flags), LIMIT_S, least_s=LEAST_S)
    if llmc.ELSEWHERE in output:
        raise OutOfMemory
    try:
        return llmc.sample(output, shape)
    except ValueError as error:
        raise Failed(f"{program}: {error}\n{output}") from error


KINDS = {"ours": ours, "pytorch": pytorch, "llm.c": llm_c}


def measure(session, side, shape):
    return KINDS[side.kind](session, shape, side.flags)
