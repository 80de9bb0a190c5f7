"""The examples run on two ranks, and say what they should; generation continues a prompt."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import time

from support import (BINARY, BUILD, TINY, check, checkpoint, environment, losses, make_data, mpirun, processes_of_ranks, run, running,
                     train, workspace)

ROOT = pathlib.Path(__file__).resolve().parents[3]


def check_checkpoints_of_mlp(root):
    """A run that was interrupted ends as one that was not; one that is asked to stop saves where it is."""
    program = BUILD / "examples/train_mlp"
    whole = run(2, [program, "200", root / "whole"])
    run(2, [program, "130", root / "parts"])  # saved after step 100
    rest = run(2, [program, "200", root / "parts"])
    check("step 50 " not in rest and "step 150 " in rest, rest)
    check(whole.splitlines()[-2:] == rest.splitlines()[-2:], f"expected\n{whole}\nfound\n{rest}")

    stopped_at = [stop_mlp(program, root / f"stopped-{attempt}", 0.007 * attempt) for attempt in range(5)]
    check(any(step % 100 for step in stopped_at), f"saved after every hundredth step only: {stopped_at}")


def stop_mlp(program, folder, delay_s):
    """The step at which it saves when it is asked to stop, or the last one at which it saves anyway, if that is the same: at once
    after a save has appeared, or a little later."""
    with running(mpirun(2, [program, "1000000", folder]), environment()) as process:
        wait_for_save(process, folder, None)
        time.sleep(delay_s)
        process.send_signal(signal.SIGUSR1)  # which mpirun hands on
        output, _ = process.communicate(timeout=60)
    check(process.returncode == 75, f"exit code {process.returncode}\n{output}")
    again = run(2, [program, "1", folder])
    check("accuracy" in again and "step" not in again, f"not gone on from where it was stopped\n{again}")
    return int(newest_step(folder)[5:])


def wait_for_save(process, folder, before):
    """Until it has a newer checkpoint, or ends."""
    deadline = time.monotonic() + 60
    while process.poll() is None and newest_step(folder) == before:
        check(time.monotonic() < deadline, f"{folder}: no checkpoint after a minute")
        time.sleep(0.005)


def check_killed_mlp(root):
    """Whenever a rank is killed, saves included, the next start goes on, and the end is that of the run nobody disturbed."""
    program, steps = BUILD / "examples/train_mlp", "2000"
    seed = int(os.environ.get("SIDESTREAM_TEST_SEED", time.time_ns() % 1_000_000))
    dice = random.Random(seed)
    whole = run(2, [program, steps, root / "undisturbed"])
    killed = 0
    for kill in range(int(os.environ.get("SIDESTREAM_RANDOM_KILLS", "3"))):
        if newest_step(root / "killed") == newest_step(root / "undisturbed"):
            shutil.rmtree(root / "killed")
        with running(mpirun(2, [program, steps, root / "killed"]), environment()) as process:
            wait_for_save(process, root / "killed", newest_step(root / "killed"))
            time.sleep(dice.uniform(0, 0.1))
            for pid in processes_of_ranks(root / "killed", dice.randrange(2), program):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            output, _ = process.communicate(timeout=60)
        check(process.returncode in (0, 137), f"kill {kill}, seed {seed}: exit code {process.returncode}\n{output}")
        killed += process.returncode == 137
    check(killed > 0, f"seed {seed}: every run was done before its kill")
    print(f"{killed} kills survived")
    rest = run(2, [program, steps, root / "killed"])
    check(whole.splitlines()[-1] == rest.splitlines()[-1], f"seed {seed}: expected\n{whole}\nfound\n{rest}")
    check(weights(root / "undisturbed", steps) == weights(root / "killed", steps), f"seed {seed}: other weights")


def newest_step(folder):
    return max((path.name for path in (folder / "checkpoints").glob("step_????????")), default=None)


def weights(folder, step):
    return (checkpoint(folder, int(step)) / "model.safetensors").read_bytes()


def main():
    output = run(2, [BUILD / "examples/hello_allreduce"])
    check("each has the sum 3" in output, output)

    output = run(2, [BUILD / "examples/train_mlp", "400"])
    accuracy = float(re.search(r"accuracy ([0-9.]+)", output).group(1))
    check(accuracy > 0.9, f"two spirals: accuracy {accuracy}\n{output}")

    with workspace() as folder:
        root = pathlib.Path(folder)
        check_checkpoints_of_mlp(root)
        check_killed_mlp(root)
        data = make_data(root / "data")
        train(2, root / "run", TINY + ["--data", str(data), "--steps", "5", "--batch-size-per-rank", "4"])
        generate = [BINARY, "generate", "--checkpoint", root / "run", "--prompt", "int main", "--tokens", "20"]
        first, second = run(1, generate), run(1, generate)
        check(first.startswith("int main") and len(first) > len("int main") + 5, f"nothing generated: {first!r}")
        check(first == second, "the same seed gives two texts")
        summary = run(1, [BINARY, "summary", "--run", root / "run", root / "run"])
        check("tokens/s" in summary and "1.00x" in summary, summary)
        check(re.search(r"Medians of (\d+) and \1 steps, .*sidestream verify", summary), summary)
        check(re.search(r"run: memory of rank 0: [0-9.]+ GiB of its host at the peak, [0-9.]+ GiB were planned", summary), summary)

        config = ["--config", str(ROOT / "examples/gpt2-mini/train.cfg"), "--data", str(data), "--steps", "2"]
        train(2, root / "mini", config + ["--batch-size-per-rank", "1", "--eval-every", "0", "--checkpoint-every", "0"])
        check(len(losses(root / "mini")) == 2, "examples/gpt2-mini/train.cfg: not two steps")


main()
