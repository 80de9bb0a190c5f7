"""Losses and gradients that are not finite or far off, and replicas that differ: all ranks agree before anything is changed or
saved, by the policy of the run; the batch that did it can be found again; a resumed run goes on bit for bit.
"""

import gzip
import json
import os
import pathlib

from support import TINY, check, checkpoint, losses, make_data, metrics, train, workspace

NUMERICS = 5
BATCH, RANKS, GPT_T = 4, 2, 32


def incidents(run_dir):
    file = pathlib.Path(run_dir) / "incidents.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def messages(output, words):
    return [line for line in output.splitlines() if words in line and "planted fault" not in line]


def check_divergence(root, flags):
    """The real thing: a learning rate that blows the weights up."""
    output = train(RANKS, root / "run", flags + ["--steps", "50", "--lr", "1000", "--algorithm", "sgd", "--grad-clip", "0", "--checkpoint-every", "1"],
                   expect=NUMERICS)
    check(len(messages(output, "not finite")) == 1, f"expected one message\n{output}")
    norms = [line["grad_norm"] for line in metrics(root / "run")]
    check(None not in norms, f"a step with a gradient that is not finite was taken: {norms}")
    check(len(incidents(root / "run")) == 1, f"{incidents(root / 'run')}")


def check_stop(root, flags):
    """One rank's loss is NaN: both stop before the update, nothing is saved, the log names rank and samples."""
    output = train(RANKS, root / "stop", flags + ["--steps", "10", "--checkpoint-every", "2", "--shuffle", "off",
                                                  "--inject", "nan:rank=1,step=6"], expect=NUMERICS)
    found = messages(output, "step 6: the loss of rank 1 is not finite. Weights were not changed")
    check(len(found) == 1, output)
    check(metrics(root / "stop")[-1]["step"] == 5, "the bad step was taken")
    check(sorted(folder.name for folder in (root / "stop/checkpoints").iterdir()) == ["step_00000002", "step_00000004"],
          "a checkpoint after the NaN")
    incident, = incidents(root / "stop")
    check((incident["step"], incident["kind"], incident["action"], incident["rank"], incident["loss"])
          == (6, "loss-not-finite", "stop", 1, None), incident)
    first = 5 * RANKS * BATCH
    check(incident["samples"] == [list(range(first + rank * BATCH, first + (rank + 1) * BATCH)) for rank in range(RANKS)], incident)
    record = json.loads((root / "stop/run.json").read_text())
    check((record["exit_code"], record["last_step"]) == (NUMERICS, 5), record)
    # Without the fault the run goes on as if nothing had been.
    train(RANKS, root / "stop", flags + ["--steps", "10", "--shuffle", "off", "--resume", "auto"])
    train(RANKS, root / "undisturbed", flags + ["--steps", "10", "--shuffle", "off"])
    check(losses(root / "stop") == losses(root / "undisturbed"), "other losses than without the fault")


def check_infinite_gradient(root, flags):
    """The losses are finite, the gradients of one rank are not: stopped before the update all the same."""
    output = train(RANKS, root / "gradient", flags + ["--steps", "10", "--checkpoint-every", "2", "--inject", "inf-grad:rank=1,step=5"], expect=NUMERICS)
    found = messages(output, "step 5: the gradient norm is not finite")
    check(len(found) == 1 and "(first in transformer." in found[0] and "Weights were not changed" in found[0], output)
    check(sorted(folder.name for folder in (root / "gradient/checkpoints").iterdir()) == ["step_00000002", "step_00000004"], "a checkpoint after it")
    incident, = incidents(root / "gradient")
    check((incident["step"], incident["action"], incident["grad_norm"]) == (5, "stop", None) and incident["loss"] > 0, incident)
    check(len(incident["samples"]) == RANKS and all(len(samples) == BATCH for samples in incident["samples"]), incident)


def check_skip(root, flags):
    """The update is left out, its step counts; stopped and resumed in the middle the losses are the same."""
    skip = flags + ["--steps", "12", "--nan-policy", "skip", "--inject", "nan:rank=0,step=4,steps=2"]
    train(RANKS, root / "skip", skip)
    lines = metrics(root / "skip")
    check([line["step"] for line in lines] == list(range(1, 13)), lines)
    check([line["step"] for line in lines if line["loss"] is None] == [4, 5], lines)
    check([(one["step"], one["action"]) for one in incidents(root / "skip")] == [(4, "skip"), (5, "skip")], incidents(root / "skip"))
    train(RANKS, root / "skip2", [flag if flag != "12" else "8" for flag in skip] + ["--lr-schedule", "constant"])
    train(RANKS, root / "skip2", flags + ["--steps", "12", "--nan-policy", "skip", "--resume", "auto", "--lr-schedule", "constant"])
    train(RANKS, root / "skip3", skip + ["--lr-schedule", "constant"])
    check(losses(root / "skip2") == losses(root / "skip3"), f"{losses(root / 'skip2')}\n{losses(root / 'skip3')}")
    # A save that is under way then and fails changes nothing about it, nor do weights that another fault writes after a skipped step.
    faults = "nan:step=4,steps=9; flip:rank=1,step=5; slow:rank=1,step=3,steps=1,at=checkpoint,ms=1500; disk-full:rank=1,step=3"
    output = train(RANKS, root / "limit", flags + ["--steps", "12", "--nan-policy", "skip", "--max-skipped-steps", "2",
                                                   "--checkpoint-every", "3", "--inject", faults], expect=NUMERICS)
    check(len(messages(output, "more than 2 in a row (--max-skipped-steps)")) == 1, output)
    check("warning: of the save that was under way: rank 1: planted fault" in output, output)
    check(metrics(root / "limit")[-1]["step"] == 5, metrics(root / "limit"))


def check_warning_between_skips(root, flags):
    """Updates that were taken with a warning end a row of those that were not."""
    planted = "; ".join(f"nan:step={step}" for step in (130, 132, 134)) + "; " + "; ".join(f"spike:step={step}" for step in (131, 133))
    train(RANKS, root / "alternating", flags + ["--steps", "136", "--nan-policy", "skip", "--max-skipped-steps", "2", "--inject", planted])
    found = [(one["step"], one["action"]) for one in incidents(root / "alternating")]
    check([step for step, action in found if action == "skip"] == [130, 132, 134], found)
    check({131, 133} <= {step for step, action in found if action == "warn"}, found)


def recorded_steps(run_dir, rank):
    found = []
    for file in run_dir.glob(f"trace/*/node0_{rank:05}.*.pt.trace.json.gz"):
        names = [event["name"] for event in json.loads(gzip.open(file, "rt").read())["traceEvents"] if event["ph"] == "X"]
        found += [int(name.split("#")[1]) for name in names if name.startswith("ProfilerStep#")]
    return found


def check_rollback(root, flags):
    """Back to the checkpoint of step 4; steps 5 and 6 are taken again, with the batches after the bad one."""
    rollback = flags + ["--steps", "9", "--nan-policy", "rollback", "--checkpoint-every", "4", "--lr-schedule", "constant", "--shuffle", "off"]
    output = train(RANKS, root / "rollback", rollback + ["--inject", "nan:rank=1,step=6"])
    check(len(messages(output, "step 6: back to step 4, and on with the batches that come next")) == 1, output)
    check([line["step"] for line in metrics(root / "rollback")] == list(range(1, 10)), metrics(root / "rollback"))
    # Back into a window of the profiler: that is dropped, and the run goes on.
    output = train(RANKS, root / "profiled", rollback + ["--inject", "nan:rank=1,step=6", "--profile", "wait=4,warmup=0,active=3,repeat=1"])
    check("the window of the profiler that was open is dropped" in output, output)
    check(losses(root / "profiled") == losses(root / "rollback"), "other losses with the profiler")
    # A recording of the whole run has all of it: the steps that were taken back, too.
    train(RANKS, root / "recorded", rollback + ["--inject", "nan:rank=1,step=6", "--profile", "wait=4,warmup=0,active=3,repeat=1", "--record", "on"])
    for rank in range(RANKS):
        steps = recorded_steps(root / "recorded", rank)
        check(sorted(steps) == [1, 2, 3, 4, 5, 5, 6, 6, 7, 8, 9], f"steps in the files of rank {rank}: {steps}")
    # Clocks are compared at both ends of each piece: one alone tells no drift.
    for file in (root / "recorded").glob("trace/*/clock.json"):
        samples = [len(rank["samples"]) for rank in json.loads(file.read_text())["ranks"]]
        check(samples == [48] * RANKS, f"{file.parent.name}: {samples}")
    incident, = incidents(root / "rollback")
    check((incident["step"], incident["action"]) == (6, "rollback"), incident)
    manifest = json.loads((checkpoint(root / "rollback", 9) / "manifest.json").read_text())
    check(manifest["training"]["samples"] == (6 + 5) * RANKS * BATCH, manifest["training"])
    check(manifest["training"]["rolled_back_s"] > 0, manifest["training"])
    # Stopped at step 8 and resumed the end is the same; also of a start that follows a failed one, whose own lock is no reason to wait.
    os.environ["SIDESTREAM_ATTEMPT"] = "2"
    output = train(RANKS, root / "rollback2", [flag if flag != "9" else "8" for flag in rollback] + ["--inject", "nan:rank=1,step=6,attempt=all"])
    del os.environ["SIDESTREAM_ATTEMPT"]
    check("in use by" not in output, output)
    train(RANKS, root / "rollback2", rollback + ["--resume", "auto"])
    check(losses(root / "rollback2") == losses(root / "rollback"), "other losses after a resume")

    output = train(RANKS, root / "nowhere", flags + ["--steps", "9", "--nan-policy", "rollback", "--inject", "nan:step=3"], expect=NUMERICS)
    check(len(messages(output, "there is no checkpoint to go back to: --checkpoint-every")) == 1, output)
    output = train(RANKS, root / "again", rollback + ["--max-skipped-steps", "2", "--inject", "nan:step=6,steps=9"],
                   expect=NUMERICS)
    check(len(messages(output, "more than 2 rollbacks to step 4")) == 1, output)


def check_spike(root, flags):
    """A loss far above the last 128: warned about, or its update left out."""
    spike = flags + ["--steps", "140", "--inject", "spike:step=135,factor=50"]
    output = train(RANKS, root / "warned", spike)
    check(len(messages(output, "warning: step 135: the loss of ")) == 1, output)
    check([one["kind"] for one in incidents(root / "warned")] == ["loss-spike"], incidents(root / "warned"))
    zscore = incidents(root / "warned")[0]["zscore"]
    check(zscore > 8, incidents(root / "warned"))
    train(RANKS, root / "allowed", spike + ["--spike-zscore", str(2 * zscore)])  # the gradient is judged, too
    check(not incidents(root / "allowed"), f"a spike of {zscore}: {incidents(root / 'allowed')}")
    train(RANKS, root / "skipped", spike + ["--spike-policy", "skip"])
    check([(one["step"], one["action"]) for one in incidents(root / "skipped")] == [(135, "skip")], incidents(root / "skipped"))
    output = train(RANKS, root / "stopped", spike + ["--spike-policy", "stop", "--checkpoint-every", "50"], expect=NUMERICS)
    check(len(messages(output, "step 135: the loss of ")) == 1 and "Nothing is saved from that step on" in output, output)
    check([(one["step"], one["action"]) for one in incidents(root / "stopped")] == [(135, "stop")], incidents(root / "stopped"))
    check(sorted(folder.name for folder in (root / "stopped/checkpoints").iterdir()) == ["step_00000050", "step_00000100"],
          "a checkpoint after the spike")
    output = train(RANKS, root / "back", spike + ["--spike-policy", "rollback", "--checkpoint-every", "132"])
    check(len(messages(output, "step 135: back to step 132, and on with the batches that come next")) == 1, output)
    check([(one["step"], one["action"]) for one in incidents(root / "back")] == [(135, "rollback")], incidents(root / "back"))
    check([line["step"] for line in metrics(root / "back")] == list(range(1, 141)), metrics(root / "back"))
    # Checkpoints keep what spikes are judged by: found also just after a resume.
    parts = flags + ["--lr-schedule", "constant"]
    train(RANKS, root / "resumed", parts + ["--steps", "130"])
    train(RANKS, root / "resumed", parts + ["--steps", "140", "--resume", "auto", "--inject", "spike:step=135,factor=50"])
    check([one["step"] for one in incidents(root / "resumed")] == [135], incidents(root / "resumed"))


def check_drift(root, flags):
    """A bit of one replica's weights is turned over: found at the next comparison, and never saved."""
    drift = flags + ["--steps", "20", "--zero", "0", "--drift-every", "5", "--checkpoint-every", "4", "--inject", "flip:rank=1,step=7"]
    output = train(3, root / "drift", drift, expect=NUMERICS)
    found = messages(output, "Replicas have drifted apart")
    check(len(found) == 1 and "The odd one: rank 1." in found[0] and "step 8:" in found[0], output)
    check([folder.name for folder in (root / "drift/checkpoints").iterdir()] == ["step_00000004"], "replicas that differ were saved")
    train(3, root / "same", flags + ["--steps", "20", "--zero", "0", "--drift-every", "1"])


def main():
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", str(BATCH)]
        check_divergence(root, flags)
        check_stop(root, flags)
        check_infinite_gradient(root, flags)
        check_skip(root, flags)
        check_warning_between_skips(root, flags)
        check_rollback(root, flags)
        check_spike(root, flags)
        check_drift(root, flags)


main()
