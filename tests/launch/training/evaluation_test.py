"""Evaluation: the loss of one rank and of two, stopping at a target, and what a dry run plans."""

import json
import pathlib
import re

from support import TINY, check, losses, make_data, train, workspace


def records(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        flags = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "4", "--steps", "9"]
        flags[flags.index("--eval-every") + 1] = "3"

        for ranks in (1, 2):
            reached = root / f"reached{ranks}"
            output = train(ranks, reached, flags + ["--target-val-loss", "100"])
            check([line["step"] for line in records(reached)] == [1, 2, 3], f"did not stop at its first evaluation\n{output}")
            check("reached the target" in output, output)
            record = json.loads((reached / "run.json").read_text())
            check(record["time_to_target_s"] > 0 and record["exit_code"] == 0, str(record))
            check((reached / "checkpoints/step_00000003/manifest.json").exists(), "nothing was saved at the target")
            output = train(ranks, reached, flags + ["--target-val-loss", "100", "--resume", "auto"])
            check("nothing is left to train: --target-val-loss was reached at step 3" in output, output)
            check(json.loads((reached / "run.json").read_text()) == record, "the record of the run that reached it has changed")
            if ranks == 1:
                output = train(ranks, reached, flags + ["--target-val-loss", "0.001", "--resume", "auto"])
                check("the target was not reached: 9 steps" in output, output)

        missed = root / "missed"
        output = train(1, missed, flags + ["--target-val-loss", "0.001"])
        check("the target was not reached: 9 steps, and the validation loss is not 0.0010 or less (it was " in output, output)
        check(json.loads((missed / "run.json").read_text())["time_to_target_s"] is None, "a target that was never reached")
        check([line["step"] for line in records(missed) if line.get("val_loss") is not None] == [3, 6, 9], "evaluations")

        planned = root / "planned"
        output = train(1, planned, flags + ["--dry-run"])
        check("and a copy of" not in output, f"the only checkpoint is that of the end, which copies nothing\n{output}")
        output = train(1, planned, flags + ["--dry-run", "--checkpoint-every", "3"])
        check("bucket" in output and "Memory of each rank" in output, output)
        planned_mib = {name: float(size) for name, size in re.findall(r"^  ([a-z ]+?) +([0-9.]+) MiB", output, re.MULTILINE)}
        check(abs(planned_mib["and a copy of"] - planned_mib["parameters"] - planned_mib["moments"]) < 0.2, str(planned_mib))
        check(planned_mib["together"] > planned_mib["parameters"] + planned_mib["activations"] > 0, str(planned_mib))
        check("Memory: this machine" not in output, f"a tiny model does not fit\n{output}")
        output = train(1, planned, flags + ["--dry-run", "--recompute", "blocks"])
        check(float(re.search(r"activations +([0-9.]+) MiB", output)[1]) < planned_mib["activations"] / 3, output)
        output = train(1, planned, ["--data", "synthetic", "--device", "cpu", "--batch-size-per-rank", "1000000", "--dry-run"])
        check(re.search(r"Memory: this machine has [0-9.]+ GiB free for 1 rank.*--recompute blocks", output), output)
        check(not planned.exists(), "a dry run made its run directory")
        check(len(losses(missed)) == 9, "steps of a whole run")


main()
