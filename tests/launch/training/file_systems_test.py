"""File systems that are full, small, read-only or made up, and what a killed run leaves in /dev/shm. Needs the right to mount (root has it, but
not in every container); without it ctest reports this test as skipped."""

import os
import pathlib

from support import (BINARY, TINY, check, checkpoint, completed, environment, expect, make_data, metrics, mpirun, only_message,
                     require_mounts, run_command, train, with_own_shared_memory, workspace)

CONFIG, CHECKPOINT, KILLED = 2, 4, 137
RANKS = 2


# Waits until a condition holds. A run that has ended, or takes two minutes, has missed it.
UNTIL = """until_so() {
  n=0
  while ! eval "$1"; do
    n=$((n + 1))
    { [ $n -lt 2400 ] && kill -0 $pid; } || { echo "never so: $1"; kill $pid; wait $pid; exit 98; }
    sleep 0.05
  done
}
"""


def in_own_file_system(root, name, flags, folder, prepare, while_running, expect, after="true"):
    """A run whose `folder` is a small file system of its own; what its checkpoints are is listed before it goes. Its one message, or what it
    printed where it succeeded, and its checkpoints."""
    run_dir, left = root / name, root / f"{name}.left"
    (run_dir / folder).mkdir(parents=True)
    ranks = " ".join(mpirun(RANKS, [BINARY, "train", "--run-dir", run_dir, "--resume", "auto", *flags]))
    script = f"""{UNTIL}{prepare} {run_dir / folder} || exit 99
{ranks} & pid=$!
{while_running}
wait $pid; code=$?
ls {run_dir}/checkpoints > {left}; {after}
exit $code"""
    done = completed(["unshare", "--mount", "sh", "-c", script], 180, environment())
    check(done.returncode == expect, f"{name}: expected {expect}, found {done.returncode}\n{done.stdout}")
    return done.stdout if expect == 0 else only_message(done.stdout, name), left.read_text().split()


def check_checkpoints(root, flags):
    saving = flags + ["--steps", "100000", "--checkpoint-every", "10", "--keep-checkpoints", "0"]
    train(1, root / "size", flags + ["--steps", "0"])
    size = sum(file.stat().st_size for file in checkpoint(root / "size", 0).iterdir())
    message, left = in_own_file_system(root, "no-space", saving, "checkpoints", f"mount -t tmpfs -o size={int(2.5 * size)} tmpfs", "true",
                                       CHECKPOINT)
    check("No space left on device" in message and "cannot write" in message, message)
    check(left == ["step_00000010", "step_00000020"], left)
    wait = f"until_so '[ -e {root}/read-only/checkpoints/step_00000010 ]'; mount -o remount,ro {root}/read-only/checkpoints"
    message, left = in_own_file_system(root, "read-only", saving, "checkpoints", "mount -t tmpfs tmpfs", wait, CHECKPOINT)
    check("Read-only file system" in message, message)
    check(left[0] == "step_00000010", left)


def check_records(root, flags):
    """Training goes on where its records cannot be written; what they should hold is in them once there is room. Without room the run ends
    where it saves, with one message, though the ledger and run.json cannot be written either."""
    quiet = flags + ["--checkpoint-every", "0"]
    message, left = in_own_file_system(root, "full", quiet + ["--steps", "400"], ".", "mount -t tmpfs -o size=128k tmpfs", "true", CHECKPOINT)
    check("No space left on device" in message, message)
    check(left == [], left)

    run_dir, kept = root / "room", root / "kept"
    room = f"until_so '[ $(df --output=avail {run_dir} | tail -1) -eq 0 ]'; sleep 0.5; mount -o remount,size=64m {run_dir}"
    still_training = ["--inject", "slow:rank=0,step=401,steps=200,ms=20"]  # 4 s: there is room before the end on fast machines too
    output, left = in_own_file_system(root, "room", quiet + ["--steps", "600", *still_training], ".",
                                      "mount -t tmpfs -o size=128k tmpfs", room, 0, after=f"cp -r {run_dir} {kept}")
    check(left == ["step_00000600"], left)
    check("warning: cannot write" in output and "can be written again" in output, output)
    check([line["step"] for line in metrics(kept)] == list(range(1, 601)), "metrics.jsonl does not have every step once")


def check_rollback(root, flags):
    """Back to a checkpoint while the metrics cannot be cut: the run goes on, and their steps are there twice once there is room."""
    run_dir, kept = root / "rollback", root / "rollback-kept"
    prepare = f"mount -t tmpfs -o size=96k tmpfs {run_dir} && mkdir {run_dir}/checkpoints && mount -t tmpfs tmpfs"
    room = f"until_so '[ -e {run_dir}/checkpoints/step_00000450 ]'; mount -o remount,size=64m {run_dir}"
    output, _ = in_own_file_system(root, "rollback", flags + ["--steps", "1000", "--checkpoint-every", "50", "--keep-checkpoints", "0",
                                                              "--nan-policy", "rollback", "--inject", "nan:rank=1,step=420"],
                                   "checkpoints", prepare, room, 0, after=f"cp -r {run_dir} {kept}")
    check("the steps after 400 stay in it, and are there twice" in output, output)
    check([line["step"] for line in metrics(kept)] == [*range(1, 420), *range(401, 1001)], [line["step"] for line in metrics(kept)])


def check_timelines(root, flags):
    """There is room for everything but the timelines of the profiler: each is a warning, the run goes on, and nothing unfinished stays."""
    profile = ["--steps", "12", "--checkpoint-every", "5", "--profile", "wait=2,warmup=1,active=2,repeat=2"]
    for more in [], ["--record", "on"]:
        name = "-".join(["timelines", *more[1:]])
        files = root / f"{name}.files"
        output, left = in_own_file_system(root, name, flags + profile + more, "trace", "mount -t tmpfs -o size=32k tmpfs", "true", 0,
                                          after=f"find {root / name}/trace -type f > {files}")
        check(left == ["step_00000010", "step_00000012"], f"{left}\n{output}")
        check("warning: the timeline of the steps up to 10 is not written" in output and "No space left on device" in output, output)
        unfinished = [file for file in files.read_text().splitlines() if not file.endswith((".gz", "clock.json"))]
        check(unfinished == [], f"left unfinished: {unfinished}")


def check_leftovers(root, flags):
    """All the room is taken by what a run that was killed has left unfinished: the next start removes it before it looks for room."""
    first = " ".join(map(str, [BINARY, "train", *flags, "--steps", "4", "--run-dir"]))
    fill = "dd if=/dev/zero bs=64k of"
    prepare = f"""fill() {{
  mount -t tmpfs -o size=64m tmpfs $1 && {first} $1 || return 1
  mkdir -p $1/trace/step_00000003 $1/checkpoints/step_00000003.pending
  {fill}=$1/checkpoints/step_00000003.pending/half count=64 2> /dev/null || return 1
  {fill}=$1/trace/step_00000003/.raw_00000.json.tmp 2> /dev/null
  [ $(df --output=avail $1 | tail -1) -eq 0 ]
}}
fill"""
    output, left = in_own_file_system(root, "leftovers", flags + ["--steps", "8"], ".", prepare, "true", 0)
    check(left == ["step_00000004", "step_00000008"], f"{left}\n{output}")


def check_unwritable(root, flags):
    folder = root / "unwritable"
    folder.mkdir()
    prefix = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o ro tmpfs {folder} && exec \"$@\"", "sh"]
    for ranks in (1, 2):
        for path in (str(folder), f"{folder}/inside"):
            expect(CONFIG, ["--run-dir", path], ranks, flags + ["--run-dir", path], prefix)


def check_folder_of_one_host(root, flags):
    """What the first rank writes, the other one does not see: both are told before a step is taken, and nothing stays behind."""
    run_dir = root / "not-shared"
    (run_dir / "checkpoints").mkdir(parents=True)
    script = ('[ "$OMPI_COMM_WORLD_RANK" = 0 ] && exec "$@"; '
              f'exec unshare --mount sh -c \'mount -t tmpfs tmpfs {run_dir}/checkpoints && exec "$@"\' sh "$@"')
    command = mpirun(RANKS, ["sh", "-c", script, "sh", BINARY, "train", "--run-dir", run_dir, "--resume", "auto", *flags, "--steps", "3"])
    found = only_message(run_command(command, CONFIG))
    check("rank 1" in found and "a file system that all hosts share" in found, found)
    check(not list((run_dir / "checkpoints").iterdir()), "something is left of the look at the folder")
    check(not (run_dir / "metrics.jsonl").exists(), "a step was taken")


def check_shared_memory(root, flags):
    """A rank is killed in the middle of a step, and while it saves."""
    saving = flags + ["--steps", "20", "--checkpoint-every", "5"]
    for at in ("forward", "commit"):
        left = root / f"shm-{at}"
        command = mpirun(RANKS, [BINARY, "train", "--run-dir", root / f"killed-{at}", "--inject", f"kill:rank=0,step=10,at={at}", *saving])
        run_command(with_own_shared_memory(command, left), KILLED)
        check(metrics(root / f"killed-{at}")[-1]["step"] >= 9, f"killed at {at}: no step was taken")
        check(left.read_text() == "", f"killed at {at}: left in /dev/shm: {left.read_text().split()}")


def check_control_group(root):
    """doctor sees the memory that a control group of either version allows: here one that a tmpfs pretends."""
    script = ("mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && cd /sys/fs/cgroup && "
              "echo 314572800 | tee memory.max memory/memory.limit_in_bytes > /dev/null && cd - > /dev/null && exec \"$@\"")
    output = run_command(["unshare", "--mount", "sh", "-c", script, "sh", BINARY, "doctor", "--device", "cpu", "--run-dir", root], CONFIG)
    said = " ".join(output.split())  # without the breaks between lines
    check("the control group allows 300 MiB" in said and "before any model is there" in said and "--memory" in said, output)


def main():
    require_mounts()
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    with workspace() as folder:
        root = pathlib.Path(folder)
        flags = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "4", "--lr-schedule", "constant"]
        check_checkpoints(root, flags)
        check_records(root, flags)
        check_rollback(root, flags)
        check_timelines(root, flags)
        check_leftovers(root, flags)
        check_unwritable(root, flags)
        check_folder_of_one_host(root, flags)
        check_shared_memory(root, flags)
        check_control_group(root)


main()
