"""What a flag sets up of the processes themselves, seen from outside while they train: cores and huge pages."""

import os
import pathlib

from support import BINARY, TINY, check, environment, make_data, mpirun, processes_of_ranks, running, wait_for_step, workspace

THP = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
# LibTorch asks for huge pages for what is larger than one: activations are, then.
MODEL = ["--model", "gpt2-tiny", *TINY[4:], "--batch-size-per-rank", "64"]


def cores_of(process):
    """Of each thread of a process, the cores that it may use."""
    found = []
    for status in pathlib.Path(f"/proc/{process}/task").glob("*/status"):
        found += [line.split()[1] for line in status.read_text().splitlines() if line.startswith("Cpus_allowed_list:")]
    return found


def asks_for_huge_pages(process):
    lines = pathlib.Path(f"/proc/{process}/smaps").read_text().splitlines()
    return any("hg" in line.split() for line in lines if line.startswith("VmFlags:"))


def look(run_dir, data, flags, seen_by):
    """What seen_by says of each of two ranks, in the order of ranks, while they train."""
    command = mpirun(2, [BINARY, "train", "--run-dir", run_dir, "--data", data, *MODEL, "--steps", "100000", *flags])
    with running(command, environment()) as run:
        wait_for_step(run, run_dir, 2)
        return [seen_by(process) for rank in range(2) for process in processes_of_ranks(run_dir, rank)]


def check_cores(root, data):
    shares = look(root / "pinned", data, [], lambda process: set(cores_of(process)))
    everywhere = look(root / "free", data, ["--pin-threads", "off"], lambda process: set(cores_of(process)))

    check(all(len(cores) == 1 for cores in everywhere) and everywhere[0] == everywhere[1], f"--pin-threads off: {everywhere}")
    if len(os.sched_getaffinity(0)) == 1:
        check(shares == everywhere, f"ranks of one core are not on it: {shares}")
        return
    own = [cores - everywhere[0] for cores in shares]
    check(own[0] and own[1] and not own[0] & own[1], f"two ranks do not share out the cores {everywhere[0]}: {shares}")


def check_huge_pages(root, data):
    if not THP.exists() or "[never]" in THP.read_text():
        return  # this kernel gives nobody any
    asked = look(root / "huge", data, [], asks_for_huge_pages)
    never = look(root / "small", data, ["--huge-pages", "off"], asks_for_huge_pages)
    check(asked == [True, True], f"huge pages are not asked for: {asked}")
    check(never == [False, False], f"--huge-pages off: they are asked for: {never}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        check_cores(root, data)
        check_huge_pages(root, data)


main()
