"""The examples run on two ranks, and say what they should; generation continues a prompt."""

import pathlib
import re
import signal
import subprocess
import time

from support import BINARY, BUILD, TINY, check, environment, losses, make_data, mpirun, run, train, workspace

ROOT = pathlib.Path(__file__).resolve().parents[3]


def check_checkpoints_of_mlp(root):
    """A run that was interrupted ends as one that was not; one that is asked to stop saves where it is."""
    program = BUILD / "examples/train_mlp"
    whole = run(2, [program, "200", root / "whole"])
    run(2, [program, "130", root / "parts"])  # saved after step 100
    rest = run(2, [program, "200", root / "parts"])
    check("step 50 " not in rest and "step 150 " in rest, rest)
    check(whole.splitlines()[-2:] == rest.splitlines()[-2:], f"expected\n{whole}\nfound\n{rest}")

    process = subprocess.Popen(mpirun(2, [program, "1000000", root / "stopped"]), env=environment(), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    checkpoints = root / "stopped/checkpoints"
    deadline = time.monotonic() + 60
    while not list(checkpoints.glob("step_*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)  # which mpirun hands on
    output, _ = process.communicate(timeout=60)
    check(process.returncode == 75, f"exit code {process.returncode}\n{output}")
    again = run(2, [program, "1", root / "stopped"])
    check("accuracy" in again and "step" not in again, f"not gone on from where it was stopped\n{again}")


def main():
    output = run(2, [BUILD / "examples/hello_allreduce"])
    check("each has the sum 3" in output, output)

    output = run(2, [BUILD / "examples/train_mlp", "400"])
    accuracy = float(re.search(r"accuracy ([0-9.]+)", output).group(1))
    check(accuracy > 0.9, f"two spirals: accuracy {accuracy}\n{output}")

    with workspace() as folder:
        root = pathlib.Path(folder)
        check_checkpoints_of_mlp(root)
        data = make_data(root / "data")
        train(2, root / "run", TINY + ["--data", str(data), "--steps", "5", "--batch-size-per-rank", "4"])
        generate = [BINARY, "generate", "--checkpoint", root / "run", "--prompt", "int main", "--tokens", "20"]
        first, second = run(1, generate), run(1, generate)
        check(first.startswith("int main") and len(first) > len("int main") + 5, f"nothing generated: {first!r}")
        check(first == second, "the same seed gives two texts")
        summary = run(1, [BINARY, "summary", "--run", root / "run", root / "run"])
        check("tokens/s" in summary and "1.00x" in summary, summary)
        check(re.search(r"run: memory of rank 0: [0-9.]+ GiB of its host at the peak, [0-9.]+ GiB were planned", summary), summary)

        config = ["--config", str(ROOT / "examples/gpt2-mini/train.cfg"), "--data", str(data), "--steps", "2"]
        train(2, root / "mini", config + ["--batch-size-per-rank", "1", "--eval-every", "0", "--checkpoint-every", "0"])
        check(len(losses(root / "mini")) == 2, "examples/gpt2-mini/train.cfg: not two steps")


main()
