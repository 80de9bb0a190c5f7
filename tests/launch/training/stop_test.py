"""Asked to stop, a run saves at the next step, ends with code 75, and goes on as if nothing had happened."""

import pathlib
import signal
import subprocess
import time

from support import BINARY, ROOT, TINY, check, checkpoint, environment, losses, make_data, metrics, train, workspace

STEPS = 60


def stopped_by(command, run_dir, send):
    process = subprocess.Popen([str(word) for word in command], env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 120
    while not (run_dir / "metrics.jsonl").exists() or len(metrics(run_dir)) < 3:
        check(process.poll() is None and time.monotonic() < deadline, "the run does not get anywhere")
        time.sleep(0.01)
    process.send_signal(send)
    output, _ = process.communicate(timeout=60)
    check(process.returncode == 75, f"expected exit code 75 after {send!r}, found {process.returncode}\n{output}")
    step = metrics(run_dir)[-1]["step"]
    check(3 <= step < STEPS, f"stopped after step {step}")
    check((checkpoint(run_dir, step) / "manifest.json").exists(), f"no checkpoint of step {step}\n{output}")


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
        alone = [BINARY, "train", "--run-dir", root / "alone", *flags]
        stopped_by(alone, root / "alone", signal.SIGTERM)


main()
