"""How a run ends when a rank throws, exits, runs out of memory or of files, or hangs beside a step, or nobody reads what it shows; and signals that come while it
evaluates or saves: the documented code, one message, and a run directory that goes on."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import tempfile
import termios
import time

import pathlib

from support import (BINARY, BUILD, ROOT, TINY, check, checkpoint, completed, environment, faulty_environment, make_data, messages_of,
                     metrics, mpirun, processes_of_ranks, running, train, wait_for_step, with_own_shared_memory, workspace)

OTHER, CONFIG, CHECKPOINT, COLLECTIVE, MEMORY, ASKED, KILLED = 1, 2, 4, 6, 8, 75, 137


def evaluating(flags):
    at = flags.index("--eval-every") + 1
    return [*flags[:at], "4", *flags[at + 1:]]


def with_steps(flags, steps):
    at = flags.index("--steps") + 1
    return [*flags[:at], str(steps), *flags[at + 1:]]


def ends(root, name, inject, flags, code, words, ranks=2, prefix=()):
    """A run that ends with this code and one message that has the words."""
    planted = ["--inject", inject] if inject else []
    command = [*prefix, *mpirun(ranks, [BINARY, "train", "--run-dir", root / name, *flags, *planted])]
    done = completed(command, 60, faulty_environment())
    lines = messages_of(done.stdout)
    check(done.returncode == code, f"{name}: expected {code}, found {done.returncode}\n{done.stdout}")
    check(len(lines) <= 1, f"{name}: {lines}\n{done.stdout}")
    for word in words:
        check(lines and re.search(word, lines[0]), f"{name}: expected '{word}' in: {lines}\n{done.stdout}")
    return done.stdout


def check_ends(root, flags):
    ends(root, "throws", "throw:rank=1,step=4", flags, OTHER, [r"\[rank 1\]: planted fault: throw of rank 1 at data of step 4"])
    ends(root, "exits", "exit:rank=1,step=4,code=17", flags, 17, [])  # the other may see it go before the launcher ends both
    ends(root, "memory", "memory:rank=1,step=4", flags, MEMORY, [r"\[rank 1\]: out of memory: a smaller --batch-size-per-rank"])
    ends(root, "early", "exit:rank=1,at=start,code=17", flags, 17, [])
    check(not (root / "early").exists(), "a run whose ranks never met has a directory")
    ends(root, "eval", "hang:rank=1,step=4,at=evaluation", evaluating(flags) + ["--timeout-eval", "2"], COLLECTIVE,
         [r"step 4, eval: not finished after 2000 ms|missing: rank 1 on .* in eval of step 4"])


def check_dead_record(root, flags):
    """A file system that does not answer when the end of the run is written down: what has failed is told all the same."""
    run_dir = root / "dead"
    command = [BINARY, "train", "--run-dir", run_dir, *flags, "--inject", "slow:step=3,steps=1,ms=1500; throw:step=4"]
    with running(command, faulty_environment()) as process:
        wait_for_step(process, run_dir, 2)
        (run_dir / "run.json").unlink()
        os.mkfifo(run_dir / "run.json")  # nobody reads it: it is opened for ever
        output, _ = process.communicate(timeout=60)
    check(process.returncode == OTHER, f"expected {OTHER}, found {process.returncode}\n{output}")
    check(output.count("sidestream: planted fault: throw of every rank at data of step 4\n") == 2, output)  # when it happens, and the message
    check("the end of the run is not recorded: run.json: not finished after 3000 ms" in output, output)


def check_no_memory(root, flags):
    """The machine has room for the plan, and the process may not have it: as much as a small model takes, and half of the weights."""
    with running([BINARY, "train", "--run-dir", root / "small", *flags], environment()) as process:
        wait_for_step(process, root / "small", 2)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    limit_kb = int(re.search(r"VmPeak:\s+(\d+) kB", status)[1]) + 220_000
    large = flags + ["--width", "3072", "--heads", "4", "--layers", "1"]
    ends(root, "large", None, large, MEMORY, ["out of memory: a smaller --batch-size-per-rank or --sequence-length needs less", r"tried to allocate \d{9}"],
         ranks=1, prefix=["sh", "-c", f'ulimit -v {limit_kb}; exec "$@"', "sh"])


def check_too_few_files(root, flags):
    ends(root, "files", None, flags, 2, ["Too many open files"], ranks=1, prefix=["sh", "-c", 'ulimit -n 6; exec "$@"', "sh"])


def check_file_size_limit(root, flags):
    """As on a full disk: metrics wait, and the run ends where it saves, with one message instead of a signal."""
    prefix = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh"]
    output = ends(root, "limit", None, with_steps(flags, 60) + ["--checkpoint-every", "0"], CHECKPOINT, [], ranks=1, prefix=prefix)
    check("File too large (`ulimit -f` lets files be larger" in output and "step 60" in output, output)
    check(not list((root / "limit/checkpoints").iterdir()), "half of a checkpoint is left")
    done = completed([*prefix, BINARY, "prepare", "--input", ROOT / "launch", "--include", "*.cpp", "--output", root / "limited"], 60, environment())
    check(done.returncode == CONFIG and "File too large" in done.stdout, f"{done.returncode}\n{done.stdout}")


def check_unread_output(root, flags):
    """Ctrl-S on the terminal, or a pipe that nobody empties: the run goes on, and ends as if somebody had looked."""
    short = with_steps(flags, 100) + ["--timeout-step", "3"]
    primary, secondary = pty.openpty()
    termios.tcflow(secondary, termios.TCOOFF)
    ends_unread(root / "stopped", short, secondary)
    termios.tcflow(secondary, termios.TCOON)
    for end in primary, secondary:
        os.close(end)
    read, written = os.pipe()
    os.write(written, b"-" * fcntl.fcntl(written, fcntl.F_GETPIPE_SZ))
    ends_unread(root / "unread", short, written)
    for end in read, written:
        os.close(end)


def ends_unread(run_dir, flags, stdout):
    command = [str(word) for word in [BINARY, "train", "--run-dir", run_dir, *flags]]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=environment() | {"TERM": "xterm"}, timeout=120, text=True)
    check(done.returncode == 0, f"{run_dir.name}: {done.returncode}\n{done.stderr}")
    check(len(metrics(run_dir)) == 100, f"{run_dir.name}: steps are missing")


def asked_during(root, name, inject, flags, wait, ranks):
    run_dir = root / f"{name}-{ranks}"
    with running(mpirun(ranks, [BINARY, "train", "--run-dir", run_dir, *flags, "--inject", inject]), faulty_environment()) as process:
        wait_for_step(process, run_dir, wait)
        time.sleep(1)  # it is in the evaluation, or the save, by now
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=60)
    check(process.returncode == ASKED, f"{name}: {process.returncode}\n{output}")
    last = metrics(run_dir)[-1]["step"]
    check((checkpoint(run_dir, last) / "manifest.json").exists(), f"{name}: no checkpoint of step {last}\n{output}")
    train(ranks, run_dir, [*with_steps(flags, last + 2), "--resume", "auto"])
    check([line["step"] for line in metrics(run_dir)] == list(range(1, last + 3)), f"{name}: steps are missing")


def check_killed_launcher(root, flags):
    """mpirun itself is killed: launch/run comes back when its ranks have gone, and leaves nothing of Open MPI behind."""
    run_dir, left = root / "launcher", root / "launcher.left"
    command = with_own_shared_memory([ROOT / "launch/run", "--build", BUILD, "-np", "2", "--", "train", "--run-dir", run_dir, *flags], left)
    with running(command, environment()) as process:
        wait_for_step(process, run_dir, 20)
        ranks = processes_of_ranks(run_dir)
        launchers = {parent_of(rank) for rank in ranks}
        check(len(ranks) == 2 and len(launchers) == 1, f"{ranks} of {launchers}")
        launcher = launchers.pop()
        os.kill(launcher, signal.SIGKILL)
        output, _ = process.communicate(timeout=60)
        check(process.returncode == KILLED, f"{process.returncode}\n{output}")
        check(not processes_of_ranks(run_dir), "ranks were left behind")
    names = left.read_text().split() if left.exists() else []
    check(not names, f"left in /dev/shm: {names}")
    folders = list(pathlib.Path(tempfile.gettempdir()).glob(f"ompi.*/pid.{launcher}"))
    check(not folders, f"left by mpirun: {folders}")


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        flags = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "2", "--steps", "1000", "--lr-schedule", "constant"]
        check_ends(root, flags)
        check_dead_record(root, flags)
        check_no_memory(root, flags)
        check_too_few_files(root, flags)
        check_file_size_limit(root, flags)
        check_unread_output(root, flags)
        check_killed_launcher(root, flags)
        for ranks in (1, 2):
            asked_during(root, "asked-in-eval", "slow:step=4,steps=1,at=evaluation,ms=3000", evaluating(flags), 3, ranks)
            asked_during(root, "asked-in-save", "slow:step=4,steps=1,at=checkpoint,ms=3000", flags + ["--checkpoint-every", "4"], 4, ranks)


main()
