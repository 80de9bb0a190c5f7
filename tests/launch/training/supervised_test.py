"""launch/supervise around real trainings: restarts from checkpoints, and an account of the time over all starts."""

import json
import pathlib
import re
import subprocess

from support import BINARY, ROOT, TINY, check, environment, losses, make_data, train, workspace

COLLECTIVE = 6


def supervised(run_dir, flags, inject, expect=0, ranks=2):
    env = environment() | {"SIDESTREAM_FAULT_INJECTION": "1"}
    command = [str(ROOT / "launch/supervise"), "-np", str(ranks), "--build", str(BINARY.parent), "--backoff", "0.2", "--mpi-arg", "--oversubscribe",
               "--", "train", "--run-dir", str(run_dir), *flags, "--inject", inject]
    done = subprocess.run(command, env=env, text=True, errors="replace", capture_output=True, timeout=300)
    check(done.returncode == expect, f"{run_dir.name}: expected {expect}, found {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def ends_in_vain(root, flags):
    """A start of a run that hangs or stops ends in its deadline, wherever that is, and says where; the supervisor gives up in the end."""
    faults = ["hang:rank=1,step=5,at=update", "stop:rank=1,step=4,at=evaluation", "hang:rank=0,step=10,at=commit",
              "stop:rank=1,step=10,at=checkpoint"]
    at = flags.index("--eval-every") + 1
    short = [*flags[:at], "4", *flags[at + 1:], "--timeout-step", "2", "--timeout-eval", "2.1", "--timeout-checkpoint", "2.2"]
    inject = "; ".join(f"{fault},attempt={number}" for number, fault in enumerate(faults, 1))
    done = supervised(root / "vain", short, inject, expect=COLLECTIVE)
    output = done.stdout + done.stderr
    for words in (r"step 5, optimizer: not finished after 2000 ms|missing: rank 1 on .* in optimizer of step 5",
                  r"not finished after 2100 ms; missing: rank 1 on .*--timeout-eval gives slow ranks more time",
                  r"(the save of step 10|step 10, checkpoint).*: not finished after 2200 ms|2200 ms; missing: rank 0 on .* in checkpoint of step 10",
                  r"not finished after 2200 ms; missing: rank 1 on .*--timeout-checkpoint gives slow ranks more time"):
        check(re.search(words, output), f"expected '{words}' in:\n{output}")
    ends = [json.loads(line) for line in (root / "vain/ettr.jsonl").read_text().splitlines()]
    check([line["code"] for line in ends if line["event"] == "ended"] == [COLLECTIVE] * len(faults), ends)
    check("giving up after 3 restarts without a new checkpoint (newest: none)" in done.stderr, done.stderr)


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", "4", "--steps", "40", "--checkpoint-every", "10"]
        flags += ["--async-checkpoints", "off"]  # the step before a failure's is saved for certain
        train(2, root / "whole", flags)

        done = supervised(root / "run", flags, "kill:rank=1,step=17; exit:rank=0,step=25,code=1,attempt=2")
        check(losses(root / "run") == losses(root / "whole"), "other losses than without failures")
        check("start 2 in 0.2 s, from step 10" in done.stderr and "start 3 in 0.2 s, from step 20" in done.stderr, done.stderr)
        ledger = [json.loads(line) for line in (root / "run/ettr.jsonl").read_text().splitlines()]
        check([line["code"] for line in ledger if line["event"] == "ended"] == [137, 1, 0], ledger)
        record = json.loads((root / "run/run.json").read_text())
        account = record["ettr_account"]
        check((account["starts"], account["failures"]) == (3, 2), account)
        parts = sum(account[key] for key in account if key.endswith("_s") and key != "wall_s")
        check(abs(parts - account["wall_s"]) < 1e-6, f"parts {parts} of {account}")
        check(all(account[key] >= -1e-3 for key in account), account)
        check(0 < record["ettr"] < 1 and account["replayed_s"] > 0 and account["idle_s"] >= 0.4, account)
        check("effective training time" in done.stdout, done.stdout)

        ends_in_vain(root, flags)
        done = supervised(root / "nan", flags, "nan:rank=1,step=5,attempt=all", expect=5)
        check("a restart would end the same way" in done.stderr, done.stderr)


main()
