"""Training on a GPU against training on the processor, every strategy against the others, and GPT-2 124M in bf16.

    gpu_training_test.py cpu|strategies|offload|fused|half|graph|resume|anomalies|gone|memory|asynchronous|large|transformers

Needs a GPU; with SIDESTREAM_TEST_DEVICE=cpu the script itself runs anywhere, with small models on the processor.
"""

import json
import math
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from support import (BINARY, SMALL, check, checkpoint, completed, environment, losses, losses_apart, make_data, metrics,  # noqa: E402
                     mpirun, only_message, processes_of_ranks, train, workspace)

DEVICE = os.environ.get("SIDESTREAM_TEST_DEVICE", "cuda")
ON_GPU = DEVICE == "cuda"
STEPS = [*SMALL, "--data", "synthetic", "--steps", "20", "--batch-size-per-rank", "4", "--seed", "7"]
SHARED = ["--device", DEVICE, "--share-gpus", "on", "--deterministic"]
LARGE_STEPS = 8


def check_against_cpu(root):
    for ranks in (1, 2):
        cpu, gpu = root / f"cpu{ranks}", root / f"gpu{ranks}"
        train(ranks, cpu, STEPS + ["--device", "cpu"])
        train(ranks, gpu, STEPS + SHARED)
        worst = losses_apart(cpu, gpu)
        print(f"{ranks} rank(s): largest difference of losses {worst:.2e}")
        check(worst < 1e-4, f"{ranks} rank(s): losses on GPU and CPU differ by {worst}")


def check_strategies(root):
    train(2, root / "all", STEPS + SHARED)
    reference = losses(root / "all")
    for name, flags in {"overlap": ["--overlap", "off"], "bucketing": ["--bucketing", "off"],
                        "buckets": ["--bucket-mb", "0.05"], "pinned": ["--pin-memory", "off"],
                        "workers": ["--loader-workers", "0"], "zero": ["--zero", "1"], "recompute": ["--recompute", "blocks"],
                        "windows": ["--nccl-windows", "off"], "late": ["--late-loss", "off"]}.items():
        train(2, root / name, STEPS + SHARED + flags)
        check(losses(root / name) == reference, f"{name}: other losses than with everything on")
    train(2, root / "staged", STEPS + SHARED + ["--backend", "mpi"])
    check(losses(root / "staged") == reference, "two ranks: NCCL and host sums differ")
    train(2, root / "plain", STEPS + SHARED + ["--fused-optimizer", "off"])
    worst = max(abs(a - b) for a, b in zip(losses(root / "plain"), reference, strict=True))
    check(worst < 1e-4, f"plain optimizer: losses differ by {worst}")
    train(2, root / "narrow", STEPS + SHARED + ["--optimizer-state-dtype", "bf16"])
    worst = max(abs(a - b) for a, b in zip(losses(root / "narrow"), reference, strict=True))
    check(worst < 5e-2, f"moments in bf16: losses differ by {worst}")


def check_offload(root):
    """What goes to the host changes no loss, with one rank and with slices of the state; a run goes on where the state lies elsewhere.
    On the processor it is refused, with what to use instead."""
    if not ON_GPU:
        output = train(1, root / "refused", STEPS + ["--device", DEVICE, "--offload", "residuals,optimizer"], expect=2)
        check("--recompute blocks" in output and "--optimizer-state-dtype bf16" in output, output)
        return
    deep = STEPS + SHARED + ["--layers", "6", "--precision", "bf16", "--grad-accumulation", "2"]
    for ranks, slices in ((1, []), (2, ["--zero", "1"])):
        flags = deep + slices + ["--checkpoint-every", "10"]
        train(ranks, root / f"none{ranks}", flags)
        for what in ("residuals", "optimizer", "residuals,optimizer"):
            train(ranks, root / f"{what}{ranks}", flags + ["--offload", what])
            check(losses(root / f"{what}{ranks}") == losses(root / f"none{ranks}"), f"{ranks} rank(s): other losses with --offload {what}")
        for name, source, what in (("on", "none", ["--offload", "optimizer"]), ("off", "optimizer", [])):
            train(ranks, root / f"{name}{ranks}", flags + what + ["--resume", str(checkpoint(root / f"{source}{ranks}", 10))])
            check(losses(root / f"{name}{ranks}") == losses(root / f"none{ranks}")[10:], f"{ranks} rank(s): other losses, resumed with {what}")


def check_fused(root):
    """Kernels for norms, GELU and loss learn what LibTorch's operators learn, and the same bits every time."""
    for precision, allowed in (("fp32", 1e-4), ("bf16", 5e-2)):
        flags = STEPS + SHARED + ["--precision", precision]
        for name, fused in (("on", "on"), ("again", "on"), ("off", "off")):
            train(1, root / f"{precision}-{name}", flags + ["--fused-ops", fused])
        on, again, off = (losses(root / f"{precision}-{name}") for name in ("on", "again", "off"))
        check(on == again, f"{precision}: two runs with fused operators differ")
        worst = max(abs(a - b) for a, b in zip(on, off, strict=True))
        print(f"{precision}: largest difference of losses {worst:.2e}")
        check(worst < allowed, f"{precision}: losses with and without fused operators differ by {worst}")


def check_half(root):
    """fp16 learns what fp32 learns, whoever keeps the state; a gradient that overflows costs one update; a run goes on bit for bit."""
    if not ON_GPU:
        output = train(2, root / "refused", STEPS + SHARED + ["--precision", "fp16"], expect=2)
        return check("on the processor use bf16" in output, output)
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    flags = STEPS + SHARED + ["--precision", "fp16", "--inject", "inf-grad:rank=1,step=5", "--checkpoint-every", "10"]
    train(2, root / "wide", STEPS + SHARED)
    train(2, root / "half", flags)
    worst = losses_apart(root / "wide", root / "half")
    print(f"fp16: largest difference of losses {worst:.2e}")
    check(worst < 5e-2, f"fp16: losses differ by {worst}")
    lines = metrics(root / "half")
    check([line["left_out"] for line in lines] == [0] * 4 + [1] * 16, f"updates left out: {lines}")
    check([line["loss_scale"] for line in lines] == [65536] * 4 + [32768] * 16, f"loss scales: {lines}")
    check(not (root / "half" / "incidents.jsonl").exists() or not (root / "half" / "incidents.jsonl").read_text(), "an incident")
    train(2, root / "rest", [*flags, "--resume", str(checkpoint(root / "half", 10))])
    check(losses(root / "rest") == losses(root / "half")[10:], "a resumed run has other losses")
    for name, more in {"slices": ["--zero", "1"], "wide sums": ["--reduce-dtype", "fp32"]}.items():
        train(2, root / name, flags + more)
        check(metrics(root / name)[-1]["left_out"] == 1, f"{name}: updates left out")
    check(losses(root / "slices") == losses(root / "half"), "slices of the state: other losses")
    for name, more in {"plain": ["--fused-ops", "off", "--fused-optimizer", "off"], "fixed": ["--loss-scale", "1024", "--nan-policy", "skip"]}.items():
        train(2, root / name, flags + more)
        check(all(math.isfinite(loss) for loss in losses(root / name)), f"{name}: losses {losses(root / name)}")


def val_losses(run_dir):
    return [(line["step"], line["val_loss"]) for line in metrics(run_dir) if line.get("val_loss") is not None]


def check_graph(root):
    """Replayed steps learn bit for bit what queued ones do: with dropout, micro-steps, evaluations and checkpoints between them, and resumed."""
    graph = ["--cuda-graph", "on"] if ON_GPU else []
    shape = [*STEPS, *SHARED, "--dropout", "0.1", "--grad-accumulation", "2", "--checkpoint-every", "10", "--drift-every", "7", "--eval-tokens", "256"]
    shape[shape.index("--data") + 1] = make_data(root / "data")
    shape[shape.index("--eval-every") + 1] = "3"
    train(2, root / "plain", shape)
    train(2, root / "graph", [*shape, *graph])
    check(losses(root / "graph") == losses(root / "plain"), "a graph changes losses")
    evaluations = val_losses(root / "plain")
    check([step for step, _ in evaluations] == [3, 6, 9, 12, 15, 18, 20], f"evaluations: {evaluations}")
    check(val_losses(root / "graph") == evaluations, f"a graph changes evaluations: {val_losses(root / 'graph')}, {evaluations}")
    train(2, root / "rest", [*shape, *graph, "--resume", str(checkpoint(root / "graph", 10))])
    check(losses(root / "rest") == losses(root / "plain")[10:], "a run that is resumed with a graph has other losses")
    check(val_losses(root / "rest") == evaluations[3:], "a run that is resumed with a graph has other evaluations")
    for name in ("rest", "graph"):
        for file in sorted(checkpoint(root / "plain", 20).glob("*.safetensors")):
            other = checkpoint(root / name, 20) / file.name
            check(file.read_bytes() == other.read_bytes(), f"{name}: {file.name} has other bytes")
    if ON_GPU:
        use = json.loads((root / "graph" / "run.json").read_text())["cuda_graph"]
        check(use["captures"] == 1 and use["eager_steps"] == 5 and use["replayed_steps"] == 15, use)
        half = [*STEPS, *SHARED, "--precision", "fp16", "--loss-scale-interval", "4"]
        train(2, root / "plain half", half)
        train(2, root / "graph half", [*half, *graph])
        for name in ("loss", "loss_scale", "left_out"):
            found, expected = ([line[name] for line in metrics(root / run)] for run in ("graph half", "plain half"))
            check(found == expected, f"fp16: a graph changes {name}: {found}, {expected}")
        scales = {line["loss_scale"] for line in metrics(root / "graph half")}
        check(len(scales) > 2, f"fp16: the scale has not moved between replays: {scales}")


def check_resume(root):
    flags = STEPS + SHARED
    train(1, root / "whole", flags + ["--checkpoint-every", "10"])
    train(1, root / "rest", flags + ["--resume", str(checkpoint(root / "whole", 10))])
    check(losses(root / "rest") == losses(root / "whole")[10:], "a resumed run has other losses")


def check_anomalies(root):
    """An update that is left out, and going back to a checkpoint: as on the processor."""
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    for policy in ("skip", "rollback"):
        flags = STEPS + ["--nan-policy", policy, "--checkpoint-every", "4", "--lr-schedule", "constant", "--inject", "nan:rank=1,step=10"]
        train(2, root / f"{policy}-cpu", flags + ["--device", "cpu"])
        train(2, root / policy, flags + SHARED)
        worst = max(abs((a or 0) - (b or 0)) for a, b in zip(losses(root / f"{policy}-cpu"), losses(root / policy), strict=True))
        check(worst < 1e-4, f"{policy}: losses on GPU and CPU differ by {worst}")
        check((losses(root / policy)[9] is None) == (policy == "skip"), f"{policy}: {losses(root / policy)}")


def check_gone(root):
    """Two ranks of one GPU, one is killed and the launcher leaves the other alone: it does not wait for NCCL, says who has died, and the run
    goes on from its checkpoint to the same losses."""
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    flags = STEPS + SHARED + ["--checkpoint-every", "4", "--async-checkpoints", "off"]
    train(2, root / "whole", flags)
    command = mpirun(2, [BINARY, "train", "--run-dir", root / "gone", *flags, "--inject", "kill:rank=1,step=10"])
    command.insert(1, "--enable-recovery")
    done = completed(command, 90, environment())
    check(re.search(r"rank 1 on .* has died: its process is gone", only_message(done.stdout, "gone")), done.stdout)
    check(list((root / "gone").glob("flight/from_step_*/rank_00000.json")), "the rank that is left has written no flight file")
    check(not processes_of_ranks(root / "gone"), "a rank stays")
    train(2, root / "gone", flags + ["--resume", "auto"])
    check(losses(root / "gone") == losses(root / "whole"), "other losses after a killed rank")


def check_memory(root):
    """Out of memory in a step, here or on the device: the code, what needs less, and that older checkpoints stay."""
    flags = STEPS + ["--device", DEVICE, "--checkpoint-every", "0"]
    if ON_GPU:
        at = flags.index("--batch-size-per-rank") + 1
        flags = [*flags[:at], "300000", *flags[at + 1:]]
    else:
        os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
        flags += ["--inject", "memory:step=1"]
    output = train(1, root / "memory", flags, expect=8)
    said = only_message(output, "memory")
    check("out of memory: a smaller --batch-size-per-rank" in said, f"{said}\n{output}")
    if ON_GPU:
        check(re.search(r"[MG]iB", said), f"need and have are not named: {said}")


def check_asynchronous(root):
    """What is saved beside training is what a blocking save writes, though the device has gone on meanwhile."""
    flags = STEPS + SHARED + ["--checkpoint-every", "5", "--keep-checkpoints", "0"]
    for name in ("on", "off"):
        train(2, root / name, flags + ["--async-checkpoints", name])
    for step in (5, 10, 15, 20):
        for file in sorted(checkpoint(root / "on", step).glob("*.safetensors")):
            other = checkpoint(root / "off", step) / file.name
            check(file.read_bytes() == other.read_bytes(), f"step {step}, {file.name}: other bytes than of a blocking save")


def train_large(root):
    shape = ["--model", "gpt2-124m", "--sequence-length", "1024", "--batch-size-per-rank", "8"]
    if not ON_GPU:
        shape = ["--model", "gpt2-tiny", "--sequence-length", "32", "--batch-size-per-rank", "2", "--threads", "1"]
    return train(1, root / "large", [*shape, "--data", "synthetic", "--steps", str(LARGE_STEPS), "--log-every", "1",
                                     "--eval-every", "0", "--precision", "bf16", "--fix-batch", "on", "--warmup-steps", "0",
                                     "--device", DEVICE])


def check_large(root):
    output = train_large(root)
    found = losses(root / "large")
    check(len(found) == LARGE_STEPS and all(map(math.isfinite, found)), f"losses {found}")
    check(found[-1] < found[0], f"the loss of one batch does not fall: {found}")
    if ON_GPU:
        check("attention runs cuDNN's kernels of packed operands" in output, "the kernel of attention is not named\n" + output)
        # At least weights, master weights, gradients and moments of 124M parameters.
        check(metrics(root / "large")[-1]["memory_bytes"] > 16 * 124e6, "the GPU's memory is not counted")


def check_transformers(root):
    import transformers
    train_large(root)
    folder = checkpoint(root / "large", LARGE_STEPS)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    names = {name for name, _ in model.named_parameters()}
    check(any(name.endswith("wte.weight") for name in names), f"parameters {sorted(names)[:5]}")
    check(all(math.isfinite(p.double().sum().item()) for p in model.parameters()), "weights are not finite")


PARTS = {"cpu": check_against_cpu, "strategies": check_strategies, "offload": check_offload, "fused": check_fused, "half": check_half, "graph": check_graph, "resume": check_resume, "anomalies": check_anomalies, "gone": check_gone,
         "memory": check_memory, "asynchronous": check_asynchronous, "large": check_large,
         "transformers": check_transformers}


def main():
    with workspace() as name:
        PARTS[sys.argv[1]](pathlib.Path(name))


if __name__ == "__main__":
    main()
