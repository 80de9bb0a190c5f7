"""How long it takes from a fault to the message that names it, and to the end of the run.

Faults are planted (--inject); the clock starts when the rank says that its fault happens, as read from the run's output. Noticed is
when a rank that lives has written its flight file: a launcher that is busy with ending ranks hands their messages on late.
"""
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from trainings import ROOT, command, environment

DEADLINE_S = 3
TINY = ["--model", "gpt2-tiny", "--sequence-length", 32, "--batch-size-per-rank", 4, "--threads", 1, "--checkpoint-every", 0, "--steps", 200,
        "--timeout-step", DEADLINE_S]
# Name, fault, more flags, what the message says, goal.
FAULTS = [
    ("a rank is stopped (SIGSTOP)", "stop:rank=1,step=20", [], r"missing: rank 1 on ", DEADLINE_S + 10),
    ("a rank hangs in a read of data", "hang:rank=1,step=20,at=data", [], r"rank 1", DEADLINE_S + 10),
    ("all ranks hang outside of collectives", "hang:step=20,at=forward", [], r"not finished after", DEADLINE_S + 10),
    ("a rank is killed (SIGKILL)", "kill:rank=1,step=20", [], r"rank 1 on .* (has died|exited on signal)", 2),
    ("a rank is killed, the launcher leaves the rest alone", "kill:rank=1,step=20", ["--enable-recovery"], r"rank 1 on .* has died", 2),
    ("the loss of a rank is NaN", "nan:rank=1,step=20", [], r"the loss of rank 1 is not finite", None),
    ("a bit of a replica flips, `--drift-every 10`", "flip:rank=1,step=21", ["--drift-every", 10, "--zero", 0], r"Replicas have drifted apart", None),
    ("a loss 50 times as large (spike), warned about", "spike:step=150,factor=50", [], r"warning: step 150: the loss of", None),
]
OVER_NODES = [
    ("two hosts: the rank of the other is killed", "kill:rank=1,step=20", r"rank 1 on .* has died", 2),
    ("two hosts: the first rank is killed", "kill:rank=0,step=20", r"rank 0 on .* has died", 2),
    ("two hosts: the cable goes silent", None, r"missing: rank", DEADLINE_S + 10),
]
SILENT_AFTER_S = 6


def noticed_s(run_dir, planted_at):
    """Seconds until the first flight file, None without one."""
    files = [file.stat().st_mtime for file in pathlib.Path(run_dir).glob("flight/from_step_*/rank_*.json")]
    return min(files) - planted_at if files else None


def watch(run_dir, words, said, begin=None, variables=None, ends=True):
    """(seconds from the fault until it is noticed, told, and the run is over). `begin`: seconds from its start when nobody says it."""
    start = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], env=environment() | (variables or {}), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    lines, planted, told = [], None if begin is None else start + begin, None
    planted_at = None if begin is None else time.time() + begin
    limit = threading.Timer(90, process.terminate)
    limit.start()
    for line in process.stdout:
        lines.append(line)
        now = time.monotonic()
        if "planted fault:" in line:
            planted, planted_at = planted or now, planted_at or time.time()
        elif planted and not told and re.search(said, line):
            told = now
            if not ends:
                process.terminate()
    process.wait()
    limit.cancel()
    if planted is None or told is None:
        sys.exit(f"{' '.join(map(str, words))}\nno message of '{said}'\n{''.join(lines)}")
    return noticed_s(run_dir, planted_at), told - planted, time.monotonic() - planted


def on_one_host(args, fault, flags, said):
    launcher = [flag for flag in flags if flag == "--enable-recovery"]
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        words = command(args, f"{folder}/run", [*TINY, "--inject", fault, *[flag for flag in flags if flag not in launcher]])
        at = words.index("--")
        words[at:at] = [word for flag in launcher for word in ("--mpi-arg", flag)]
        return watch(f"{folder}/run", words, said)


def over_hosts(args, fault, said):
    """The launcher leaves the rest alone; a silent cable it would wait for itself, so the run is ended once the message is there."""
    inject = ["--inject", fault] if fault else []
    variables = {} if fault else {"SIDESTREAM_LINK_SILENT_WHEN": f"sleep {SILENT_AFTER_S}"}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        steps = [100000 if flag == 200 else flag for flag in TINY]
        words = ["bash", ROOT / "tests/comm/run_in_namespaces.sh", shutil.which("mpirun"), 1, 1, "--enable-recovery", "-x",
                 "SIDESTREAM_FAULT_INJECTION", args.build / "sidestream", "train", "--run-dir", f"{folder}/run", "--data", "synthetic",
                 "--device", "cpu", "--eval-every", 0, "--lr-schedule", "constant", *steps, *inject]
        return watch(f"{folder}/run", words, said, begin=None if fault else SILENT_AFTER_S, variables=variables, ends=fault is not None)


def row(name, times, goal):
    noticed, told, ended = zip(*times)
    noticed = "" if None in noticed else f"{statistics.median(noticed):.2f} s ({max(noticed):.2f})"
    return (f"| {name} | {noticed} | {statistics.median(told):.2f} s ({max(told):.2f}) | {statistics.median(ended):.2f} s | "
            f"{'' if goal is None else f'{goal} s'} |")


def section(args):
    lines = ["## From a fault to the message that names it", "",
             f"{args.ranks} ranks, gpt2-tiny, `--timeout-step {DEADLINE_S}`; median of {args.repeats} (worst). Two hosts: namespaces of this machine.",
             "The goal stands for \"noticed after\": when a rank that is left has it in its flight file.", "",
             "| fault | noticed after | message after | run over after | goal |", "|---|---|---|---|---|"]
    for name, fault, flags, said, goal in FAULTS:
        lines.append(row(name, [on_one_host(args, fault, flags, said) for _ in range(args.repeats)], goal))
    for name, fault, said, goal in OVER_NODES:
        lines.append(row(name, [over_hosts(args, fault, said) for _ in range(args.repeats)], goal))
    return lines
