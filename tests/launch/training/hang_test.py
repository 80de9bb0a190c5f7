"""A rank that hangs, is stopped, dies or does something else than the others, by planted faults: one message that names it, in
time, the documented code, and what every rank was doing is in the run directory."""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

from support import (BINARY, BUILD, TINY, check, completed, environment, faulty_environment, make_data, metrics, mpirun, only_message,
                     running, wait_for_step, workspace)

COLLECTIVE, PEER, KILLED = 6, 7, 137
DEADLINE_S = 3
LATEST_S = 45  # well after a deadline, on a machine with other work; well before a save that takes a minute


def run_with(root, name, ranks, inject, flags, code, after_step=5, dead_files=False):
    """Runs with a planted fault; returns the message and the flight files. The end comes soon after the last step that was logged;
    after_step=None: no step is taken. dead_files: a rank that opens its flight file never comes back, as from a file system that hangs."""
    run_dir = root / name
    if dead_files:
        folder = run_dir / "flight/from_step_00000000"
        folder.mkdir(parents=True)
        for rank in range(ranks):
            os.mkfifo(folder / f"rank_{rank:05}.json")
    done = completed(mpirun(ranks, [BINARY, "train", "--run-dir", run_dir, "--inject", inject, *flags]), 120, faulty_environment())
    ended = time.time()
    check(done.returncode == code, f"{name}: expected exit code {code}, found {done.returncode}\n{done.stdout}")
    message = only_message(done.stdout, name)
    if after_step is not None:
        took = ended - (run_dir / "metrics.jsonl").stat().st_mtime
        check(took < LATEST_S, f"{name}: took {took:.1f} s after the last step")
        check(metrics(run_dir)[-1]["step"] >= after_step - 1, f"{name}: stopped at {metrics(run_dir)[-1]}")
    word, = [line for line in done.stdout.splitlines() if re.match("  what (each|this) rank was doing", line)]
    expected = "not finished after 3000 ms, its file system hangs" if dead_files else f"`sidestream-trace report {run_dir}`"
    check(f"{run_dir}/flight/" in word and expected in word, f"{name}: {word}")
    print(f"{name}: {message}")
    return message, sorted((run_dir / "flight").glob("*/rank_*.json"))


def has(message, *words):
    for word in words:
        check(re.search(word, message), f"expected '{word}' in: {message}")


def check_flights(files, ranks, threads=()):
    """Of these ranks at least: a stopped one may write its file too, when the launcher lets it go on in order to end it. `threads`:
    those of these ranks that show what they do."""
    check({int(file.stem[5:]) for file in files} >= set(ranks), f"expected the files of {ranks}, found {files}")
    for file in files:
        flight = json.loads(file.read_text())
        check(flight["collectives"] and flight["collectives"][-1]["state"] in ("queued", "started", "finished", "failed"), f"{file}: {flight}")
        shown = {thread["name"] for thread in flight["threads"] if len(thread["calls"]) > 3}
        check(shown, f"{file}: no stacks")
        check(flight["rank"] not in ranks or shown >= set(threads), f"{file}: stacks of {shown} only")


def refused_without_permission(root, flags):
    env = {key: value for key, value in environment().items() if key != "SIDESTREAM_FAULT_INJECTION"}
    done = subprocess.run([BINARY, "train", "--run-dir", root / "refused", "--inject", "kill", *flags], env=env, text=True, capture_output=True)
    check(done.returncode == 2 and "SIDESTREAM_FAULT_INJECTION=1" in done.stderr, f"{done.returncode} {done.stderr}")
    config = root / "faults.cfg"
    config.write_text("inject = kill\n")  # as a run with faults leaves it
    done = subprocess.run([BINARY, "train", "--config", config, "--run-dir", root / "refused", *flags], env=env, text=True, capture_output=True)
    check(done.returncode == 2 and "SIDESTREAM_FAULT_INJECTION=1" in done.stderr, f"{done.returncode} {done.stderr}")
    check(not (root / "refused").exists(), "a refused call left a run directory behind")
    done = subprocess.run([BINARY, "train", "--inject", "explode:rank=1", *flags], env=env, text=True, capture_output=True)
    check(done.returncode == 2 and "one of kill, stop" in done.stderr, f"{done.returncode} {done.stderr}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", data, "--batch-size-per-rank", "2", "--steps", "100000", "--timeout-step", DEADLINE_S]
        flags = [str(flag) for flag in flags]
        refused_without_permission(root, flags)

        # A save that takes long does not hold the message up.
        saving = "stop:rank=2,step=5; slow:step=4,steps=1,at=checkpoint,ms=60000"
        message, files = run_with(root, "stopped", 4, saving, flags + ["--checkpoint-every", "4"], COLLECTIVE)
        has(message, r"missing: rank 2 on ", r"not finished after 3000 ms", r"silent for .* stopped or starved", r"--timeout-step gives slow ranks")
        check_flights(files, [0, 1, 3])

        message, files = run_with(root, "hangs", 2, "hang:rank=1,step=5,at=data", flags, COLLECTIVE)
        has(message, r"(\[rank 1\]: step 5, data: not finished after 3000 ms|missing: rank 1 on .* in data of step 5)")
        check_flights(files, [0, 1])

        message, _ = run_with(root, "all-hang", 2, "hang:step=5,at=forward", flags, COLLECTIVE, dead_files=True)
        has(message, r"step 5, forward: not finished after 3000 ms, and no collective is in flight")

        message, files = run_with(root, "alone", 1, "hang:step=5", flags, COLLECTIVE)
        has(message, r"^sidestream: step 5, forward: not finished")

        message, files = run_with(root, "set-up", 2, "hang:rank=1,at=setup", flags + ["--timeout-setup", "2"], COLLECTIVE, after_step=None)
        has(message, r"(\[rank 1\]: the set-up, data: not finished after 2000 ms|missing: rank 1 on )")
        check({file.stem for file in files} >= {"rank_00001"}, f"{files}")

        message, files = run_with(root, "set-up-alone", 1, "hang:at=setup", flags + ["--timeout-setup", "2"], COLLECTIVE, after_step=None)
        has(message, r"^sidestream: the set-up, data: not finished after 2000 ms")
        check(len(files) == 1, f"{files}")

        hangs_at_the_end(root, flags)
        last_record_hangs(root, flags)

        message, _ = run_with(root, "end", 1, "hang:at=restore",
                              flags + ["--resume", "auto", "--timeout-setup", "2", "--timeout-checkpoint", "2"], COLLECTIVE,
                              after_step=None)
        has(message, r"^sidestream: the set-up, checkpoint: not finished after 2000 ms")

        # A step takes 0.2 s, so that the next save comes after the deadline of this one.
        beside = "hang:rank=1,step=10,at=checkpoint; slow:rank=0,ms=200,steps=0"
        message, files = run_with(root, "save", 2, beside, flags + ["--checkpoint-every", "10", "--timeout-checkpoint", "1"], COLLECTIVE)
        has(message, r"\[rank 1\]: the save of step 10, which is written beside training: not finished after 1000 ms")
        check_flights(files, [1], ["ss-background", "ss-progress"])

        message, _ = run_with(root, "desync", 3, "desync:rank=1,step=5", flags + ["--check-collectives"], COLLECTIVE, dead_files=True)
        has(message, r"rank 1 calls barrier as operation \d+, ranks 0, 2 call \w+", "no data was moved")

        gone_without_help(root, flags, "kill", "killed by SIGKILL")
        gone_without_help(root, flags, "exit", "it exited by itself with code 17")
        slow_rank_goes_on(root, flags)
        slow_look_goes_on(root)


def gone_without_help(root, flags, fault, how):
    """mpirun leaves the others alone: they find out by themselves, before the deadline of the step, which would be told instead, and say
    what is known of the end."""
    run_dir = root / fault
    command = mpirun(3, [BINARY, "train", "--run-dir", run_dir, "--inject", f"{fault}:rank=1,step=5", *flags])
    command.insert(1, "--enable-recovery")
    done = completed(command, 60, faulty_environment())
    known = rf"({how}|killed, or it exited by itself)"  # the second: a kernel before 6.15
    check(re.search(rf"rank 1 on .* has died: its process is gone \({known}", only_message(done.stdout, fault)), done.stdout)
    check_flights(sorted((run_dir / "flight").glob("from_step_*/rank_*.json")), [0, 2])


def slow_look_goes_on(root):
    """A data set that takes longer to look at than the set-up may take, on one rank: it makes progress, and the other one waits."""
    data = root / "large"
    data.mkdir()
    tokens = 40 << 20  # 20 pieces for each rank, half a second each on rank 1
    with open(data / "train_0.bin", "wb") as shard:
        shard.write(struct.pack("<3i", 20240520, 1, tokens))
        shard.truncate(1024 + 2 * tokens)
    preload = f"LD_PRELOAD={BUILD / 'tests/launch/training/libsidestream_slow_pages.so'}"
    flags = [*TINY, "--data", data, "--batch-size-per-rank", "1", "--steps", "1", "--timeout-setup", "8"]
    begin = time.monotonic()
    done = completed(mpirun(2, ["env", preload, BINARY, "train", "--run-dir", root / "looks", *flags]), 120, environment())
    check(done.returncode == 0, f"{done.returncode}\n{done.stdout}")
    check(time.monotonic() - begin > 10, "nobody was slow")
    told = re.search(r"looking at every token before training, (\d+) % so far", done.stdout)
    check(told is not None and 20 <= int(told[1]) <= 90, f"not the share of the slow rank:\n{done.stdout}")


def hangs_at_the_end(root, flags):
    """A rank does not come out of MPI, with all work done: the other says so and the job ends."""
    short = flags[:flags.index("--steps")] + ["--steps", "3", "--timeout-setup", "3"]
    preload = f"LD_PRELOAD={BUILD / 'tests/launch/training/libsidestream_hanging_finalize.so'}"
    done = completed(mpirun(2, ["env", preload, BINARY, "train", "--run-dir", root / "end", *short]), 60, environment())
    # Open MPI's launcher may crash while it takes itself down, and has told the ranks' code before.
    launcher_crashed = done.returncode == -signal.SIGSEGV and "PMIx_server_finalize" in done.stdout
    told = re.search(r"Exit code:\s+(\d+)", done.stdout) if launcher_crashed else None
    code = int(told[1]) if told else done.returncode
    check(code == COLLECTIVE, f"{done.returncode}\n{done.stdout}")
    has(done.stdout, r"leaving MPI, with all work done: not finished after 3000 ms")
    check(len(metrics(root / "end")) == 3, "not all of its steps are there")


def last_record_hangs(root, flags):
    """A file system that does not answer once all steps are done: here a pipe that nobody reads, in the place of run.json. A single process
    has nobody who would wait for it."""
    run_dir = root / "last-record"
    slow = "slow:ms=200,steps=0"
    short = flags[:flags.index("--steps")] + ["--steps", "8", "--timeout-step", str(DEADLINE_S), "--inject", slow]
    with running([BINARY, "train", "--run-dir", run_dir, *short], faulty_environment()) as process:
        wait_for_step(process, run_dir, 1)
        (run_dir / "run.json").unlink()
        os.mkfifo(run_dir / "run.json")
        output, _ = process.communicate(timeout=60)
    check(process.returncode == COLLECTIVE, f"{process.returncode}\n{output}")
    has(output, r"step 8, log: not finished after 3000 ms, and no collective is in flight")
    check((run_dir / "checkpoints/step_00000008").exists(), "the last step was not saved")
    check((run_dir / "flight/end/rank_00000.json").exists(), "no stacks")


def slow_rank_goes_on(root, flags):
    """Slow is not dead."""
    short = flags[:flags.index("--steps")] + ["--steps", "6", "--timeout-step", str(DEADLINE_S)]
    command = mpirun(2, [BINARY, "train", "--run-dir", root / "slow", "--inject", "slow:rank=1,ms=500", *short])
    done = completed(command, 60, faulty_environment())
    check(done.returncode == 0, f"a slow rank ended the run: {done.returncode}\n{done.stdout}")
    check(metrics(root / "slow")[-1]["batch_cost_s"] > 0.4, f"not slowed: {metrics(root / 'slow')[-1]}")


main()
