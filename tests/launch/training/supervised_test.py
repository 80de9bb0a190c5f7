"""launch/supervise around real trainings: restarts from checkpoints, and an account of the time over all starts."""

import json
import pathlib
import subprocess

from support import BINARY, ROOT, TINY, check, environment, losses, make_data, train, workspace


def supervised(run_dir, flags, inject, expect=0, ranks=2):
    env = environment() | {"SIDESTREAM_FAULT_INJECTION": "1"}
    command = [str(ROOT / "launch/supervise"), "-np", str(ranks), "--build", str(BINARY.parent), "--backoff", "0.2", "--mpi-arg", "--oversubscribe",
               "--", "train", "--run-dir", str(run_dir), *flags, "--inject", inject]
    done = subprocess.run(command, env=env, text=True, errors="replace", capture_output=True, timeout=300)
    check(done.returncode == expect, f"{run_dir.name}: expected {expect}, found {done.returncode}\n{done.stdout}{done.stderr}")
    return done


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

        done = supervised(root / "vain", flags, "kill:rank=1,step=5,attempt=all", expect=137)
        check("giving up after 3 restarts without a new checkpoint (newest: none)" in done.stderr, done.stderr)
        done = supervised(root / "nan", flags, "nan:rank=1,step=5,attempt=all", expect=5)
        check("a restart would end the same way" in done.stderr, done.stderr)


main()
