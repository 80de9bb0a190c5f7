"""One rank under Nsight Systems. Called by launch/nsys-collect: nsys stands between the launcher and the trainer, passes no
signals on and does not always pass on how the trainer ended.

  nsys_rank.py rank FOLDER RECORDER PROGRAM ARGUMENT ...      what mpirun or srun starts in the trainer's place
  nsys_rank.py trainer WORD PROGRAM ARGUMENT ...              what nsys starts: leaves the trainer's number and exit code in files

RECORDER: a JSON list of words; in them {rank} is the rank, in five digits. FOLDER: for the files of the ranks.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGTERM)
BETWEEN_LOOKS_S = 0.1
ATTEMPTS = 4  # nsys 2022 sometimes fails to start beside another ("Local Endpoint is not available")


def own_rank():
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


def number_in(path):
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def run_rank(folder, recorder, command):
    rank = f"{own_rank():05d}"
    word = pathlib.Path(folder) / rank
    here = pathlib.Path(folder) / socket.gethostname()  # for start and stop by hand
    here.mkdir(exist_ok=True)
    (here / rank).touch()
    waiting = []
    for number in PASSED_ON:
        signal.signal(number, lambda got, _frame: waiting.append(got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)  # launch/run blocks some until the trainer is ready for them
    words = [one.replace("{rank}", rank) for one in json.loads(recorder)]
    for attempt in range(ATTEMPTS):
        code = run_recorder(words, word, command, waiting)
        if word.with_suffix(".pid").exists() or waiting:
            break
        time.sleep(0.5 * (attempt + 1) + 0.1 * own_rank())
    of_trainer = number_in(word.with_suffix(".code"))
    return of_trainer if of_trainer is not None else code if code >= 0 else 128 - code


def run_recorder(words, word, command, waiting):
    """Exit code of nsys around the trainer; `waiting`: signals to pass on, filled meanwhile."""
    # A session of its own: launchers signal the whole group of the process that they have started, and nsys would end.
    process = subprocess.Popen([*words, sys.executable, __file__, "trainer", str(word), *command], start_new_session=True)
    while True:
        try:
            return process.wait(BETWEEN_LOOKS_S)
        except subprocess.TimeoutExpired:
            trainer = number_in(word.with_suffix(".pid"))
            while waiting and trainer is not None:
                signal_trainer(trainer, waiting.pop(0))


def signal_trainer(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended meanwhile


def run_trainer(word, command):
    # As launch/run does: a request that comes early waits for the trainer instead of killing it.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1, signal.SIGUSR2))
    process = subprocess.Popen(command)
    pathlib.Path(word + ".pid").write_text(str(process.pid))
    code = process.wait()
    code = 128 - code if code < 0 else code
    pathlib.Path(word + ".code").write_text(str(code))
    return code


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        sys.exit(run_rank(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(run_trainer(sys.argv[2], sys.argv[3:]))
