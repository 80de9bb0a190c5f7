"""Asked to stop, a run saves at the next step, ends with code 75, and goes on as if nothing had happened."""

import os
import pathlib
import signal
import subprocess
import time

from support import (BINARY, ROOT, TINY, catches_usr1, check, checkpoint, environment, faulty_environment, losses, make_data, metrics,
                     mpirun, processes_of_ranks, running, train, wait_for_step, wait_until, workspace)

STEPS = 150
# A run that is asked to stop lasts long enough to hear of it, on any machine.
SLOW = f"slow:rank=0,step=1,steps={STEPS},ms=50"


def stopped_by(command, run_dir, send, rank=None):
    """`rank`: the signal goes to this one alone, instead of to the process that was started."""
    with running([*command, "--inject", SLOW], faulty_environment()) as process:
        wait_for_step(process, run_dir, 3)
        os.kill(process.pid if rank is None else processes_of_ranks(run_dir, rank)[0], send)
        output, _ = process.communicate(timeout=120)
    check(process.returncode == 75, f"expected exit code 75 after {send!r}, found {process.returncode}\n{output}")
    step = metrics(run_dir)[-1]["step"]
    check(3 <= step < STEPS, f"stopped after step {step}")
    check((checkpoint(run_dir, step) / "manifest.json").exists(), f"no checkpoint of step {step}\n{output}")


def stopped_at_once(command, run_dir):
    """Asked twice within a step: no save, no waiting for the end of the step."""
    with running(command, environment()) as process:
        wait_for_step(process, run_dir, 1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        check(not processes_of_ranks(run_dir), f"these still run: {processes_of_ranks(run_dir)}")
    check(process.returncode not in (0, 75), f"ended with {process.returncode} after the second request\n{output}")
    check(not list((run_dir / "checkpoints").glob("step_*")), f"a checkpoint after the second request\n{output}")
    check(len(metrics(run_dir)) == 1, f"the step came to its end: {metrics(run_dir)}\n{output}")
    return process.returncode


def passed_over_where_the_caller_ignores_it(command, run_dir):
    """SIGINT of a process that a script started with `&`: the terminal's Ctrl-C is meant for the script."""
    with running(["env", "--ignore-signal=INT", *command, "--inject", SLOW], faulty_environment()) as process:
        wait_for_step(process, run_dir, 2)
        process.send_signal(signal.SIGINT)
        wait_for_step(process, run_dir, metrics(run_dir)[-1]["step"] + 2)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    check(process.returncode == 75, f"expected 75 after SIGTERM, found {process.returncode}\n{output}")


def asked_twice_while_it_saves(root, flags, ranks):
    """A second SIGUSR1 changes nothing; a second SIGTERM ends the run in the middle of its save, which no later start takes for one."""
    slow = ["--inject", f"{SLOW}; slow:step=1,steps=1,at=checkpoint,ms=3000"]
    for send, code in ((signal.SIGUSR1, 75), (signal.SIGTERM, 128 + signal.SIGTERM)):
        run_dir = root / f"saving-{ranks}-{send.name}"
        command = [ROOT / "launch/run", "-np", ranks, "--build", BINARY.parent, "--", "train", "--run-dir", run_dir, *flags, *slow]
        with running(command, faulty_environment()) as process:
            wait_for_step(process, run_dir, 3)
            process.send_signal(send)
            wait_until(process, lambda: list((run_dir / "checkpoints").glob("*.pending")), "it saves")
            time.sleep(0.3)  # at once they would be one request
            process.send_signal(send)
            output, _ = process.communicate(timeout=60)
            check(not processes_of_ranks(run_dir), f"ranks are left after {send!r}")
        check(process.returncode == code, f"expected {code} after {send!r} in a save, found {process.returncode}\n{output}")
        step = metrics(run_dir)[-1]["step"]
        check(step < STEPS and checkpoint(run_dir, step).exists() == (code == 75), f"after {send!r} at step {step}\n{output}")
        output = train(ranks, run_dir, flags + ["--resume", "auto"])
        check("skipped checkpoint" not in output, output)
        check([line["step"] for line in metrics(run_dir)] == list(range(1, STEPS + 1)), f"steps are missing after {send!r}")
        check(not list((run_dir / "checkpoints").glob("*.pending")), f"half of a save is left after {send!r}")
    check(losses(root / f"saving-{ranks}-SIGUSR1") == losses(root / f"saving-{ranks}-SIGTERM"), "a save that was cut short has changed the run")


def asked_before_its_first_step(root, flags, ranks):
    """In the set-up, and while a checkpoint is loaded: the first step that comes is taken, saved, and the last one."""
    run_dir = root / f"early-{ranks}"
    lock = run_dir / "lock"

    def hear(place):
        """The directory is taken after the set-up, and before anything is loaded."""
        pids = processes_of_ranks(run_dir)
        return len(pids) == ranks and all(map(catches_usr1, pids)) and (place == "setup" or is_held_by_one_of(pids, lock))

    for step, place in ((1, "setup"), (2, "restore")):
        command = mpirun(ranks, [BINARY, "train", "--run-dir", run_dir, *flags, "--resume", "auto", "--inject", f"slow:at={place},ms=1500"])
        with running(command, faulty_environment()) as process:
            wait_until(process, lambda: hear(place), f"ranks hear of requests in {place}")
            check(lock.exists() == (place == "restore"), f"{place}: asked too late")
            process.send_signal(signal.SIGUSR1)
            output, _ = process.communicate(timeout=60)
        check(process.returncode == 75, f"{place}: expected exit code 75, found {process.returncode}\n{output}")
        check([line["step"] for line in metrics(run_dir)] == list(range(1, step + 1)), f"{place}: {metrics(run_dir)}")
        check((checkpoint(run_dir, step) / "manifest.json").exists(), f"{place}: no checkpoint of step {step}\n{output}")


def is_held_by_one_of(pids, lock):
    return any(f"process {pid} on" in lock.read_text() for pid in pids)


def torn_down_by_mpirun(root, flags, send):
    """Bare mpirun ends its ranks within a second or two: whatever they could save is whole, and the run goes on from it."""
    run_dir = root / send.name
    saving = flags + ["--checkpoint-every", "2", "--resume", "auto"]
    with running(mpirun(2, [BINARY, "train", "--run-dir", run_dir, *saving, "--inject", SLOW]), faulty_environment(),
                 stdout=subprocess.DEVNULL) as process:
        wait_for_step(process, run_dir, 3)
        process.send_signal(send)
        check(process.wait(timeout=60) != 0, f"mpirun ended with 0 after {send!r}")
    check(metrics(run_dir)[-1]["step"] < STEPS, f"the run ended before {send!r}")
    output = train(2, run_dir, saving)
    check("skipped checkpoint" not in output, f"a checkpoint was half visible after {send!r}\n{output}")
    check(not list((run_dir / "checkpoints").glob("*.pending")), f"half of a save is left after {send!r}")
    check(losses(run_dir) == losses(root / "whole"), f"losses differ after {send!r} to mpirun")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        flags = TINY + ["--data", str(data), "--batch-size-per-rank", "8", "--steps", str(STEPS)]
        train(2, root / "whole", flags)
        through_run = [ROOT / "launch/run", "-np", "2", "--build", BINARY.parent, "--", "train", "--run-dir", root / "run",
                       *flags]
        stopped_by(through_run, root / "run", signal.SIGINT)
        train(2, root / "run", flags + ["--resume", "auto"])
        check(losses(root / "run") == losses(root / "whole"), "losses differ after a stop")
        bare = mpirun(2, [BINARY, "train", "--run-dir", root / "bare", *flags])
        stopped_by(bare, root / "bare", signal.SIGUSR1)
        of_one = mpirun(2, [BINARY, "train", "--run-dir", root / "of-one", *flags])
        stopped_by(of_one, root / "of-one", signal.SIGUSR1, rank=1)
        for ranks in (1, 2):
            asked_before_its_first_step(root, flags, ranks)
            asked_twice_while_it_saves(root, flags, ranks)
        for send in (signal.SIGINT, signal.SIGTERM):
            torn_down_by_mpirun(root, flags, send)
        alone = [BINARY, "train", "--run-dir", root / "alone", *flags]
        stopped_by(alone, root / "alone", signal.SIGTERM)
        once = [BINARY, "train", "--run-dir", root / "once", *flags]
        stopped_by(once, root / "once", signal.SIGINT)

        passed_over_where_the_caller_ignores_it([BINARY, "train", "--run-dir", root / "ignored", *flags], root / "ignored")

        # Steps of seconds: the second request comes before the first one is looked at.
        slow = ["--data", str(data), "--model", "gpt2-tiny", "--sequence-length", "128", "--threads", "1", "--log-every", "1",
                "--eval-every", "0", "--steps", "100", "--batch-size-per-rank", "512"]
        code = stopped_at_once([BINARY, "train", "--run-dir", root / "twice", *slow], root / "twice")
        check(code == 128 + signal.SIGINT, f"expected 130 after the second SIGINT, found {code}")
        stopped_at_once([ROOT / "launch/run", "-np", "2", "--build", BINARY.parent, "--", "train", "--run-dir",
                         root / "both", *slow], root / "both")


main()
