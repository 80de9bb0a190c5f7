"""`sidestream bench allreduce` and its like, `overlap` and `step`: what they print agrees with itself, bad input is refused, and a request
to stop ends them with what there is."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from running import processes_with
from support import BINARY, catches_usr1, check, environment, mpirun, run, running, wait_until

TINY = ["--model", "gpt2-tiny", "--sequence-length", "32", "--batch-size-per-rank", "2", "--threads", "1", "--device", "cpu"]


def rows_of(output):
    """Lines of a table: its first word is a size."""
    return [line.split() for line in output.splitlines() if re.match(r"\d+[kmg]? +\d", line)]


def agrees(value, expected):
    return abs(value - expected) <= 0.001 * expected + 1e-9


def check_bandwidths(subject, ranks, ways, flags=()):
    """Algorithm bandwidth is bytes over time, bus bandwidth that times ways (n - 1) / n, row by row."""
    output = run(ranks, [BINARY, "bench", subject, "--seconds", "0.01", "--device", "cpu", *flags])
    rows = rows_of(output)
    for _, size, mean_us, least_us, algorithm, bus, repeats in rows:
        check(float(least_us) <= float(mean_us) and int(repeats) >= 1, output)
        moved = int(size) / float(mean_us) * 1e-3
        check(abs(float(algorithm) - moved) <= 0.005 * moved + 0.01 / float(mean_us) * moved, f"{subject}: {algorithm} is not {moved}\n{output}")
        check(agrees(float(bus), float(algorithm) * ways * (ranks - 1) / ranks), f"{subject}: {bus} of {algorithm}\n{output}")
    return output, rows


def check_collectives():
    for subject, ways in (("allreduce", 2), ("allgather", 1), ("reducescatter", 1)):
        output, rows = check_bandwidths(subject, 3, ways, ["--sizes", "4k,64k,1m"])
        check(f"{subject}, 3 ranks, mpi" in output and ", fp32;" in output and "no CTAs" not in output, output)
        check([int(row[1]) for row in rows] == [4092, 65532, 1048572], output)  # equal parts for three
        _, rows = check_bandwidths(subject, 2, ways, ["--sizes", "4k,1m", "--dtype", "bf16", "--backend", "mpi", "--repeats", "7"])
        check([row[:2] + row[-1:] for row in rows] == [["4k", "4096", "7"], ["1m", "1048576", "7"]], f"{rows}")
    output, rows = check_bandwidths("allreduce", 2, 2)
    check([row[0] for row in rows] == ["4k", "16k", "64k", "256k", "1m", "4m", "16m", "64m", "256m"], output)


def check_overlap():
    output = run(2, [BINARY, "bench", "overlap", "--sizes", "64k,1m", "--repeats", "10", "--device", "cpu", "--threads", "1"])
    check("allreduce beside matrix products, 2 ranks x 1 thread(s)" in output, output)
    rows = rows_of(output)
    check([row[0] for row in rows] == ["64k", "1m"], output)
    for _, compute, collective, together, hidden, slower, repeats in rows:
        compute, collective, together = float(compute), float(collective), float(together)
        check(int(repeats) == 10 and min(compute, collective, together) > 0, output)
        shorter = min(compute, collective)
        rounding = (100 * 0.002 + abs(float(hidden)) * 0.0006) / shorter + 0.1  # of the times, the divisor's too
        check(abs(float(hidden) - 100 * (compute + collective - together) / shorter) <= rounding, output)
        beside = (compute - 0.0006) * (1 + float(slower) / 100)  # what is printed is rounded to a microsecond
        check(beside <= together + 0.002, f"the product ends before both do\n{output}")


def check_step(ranks):
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["TMPDIR"] = temporary
        output = run(ranks, [BINARY, "bench", "step", *TINY, "--steps", "20", "--warm-up", "4"])
        del os.environ["TMPDIR"]
        left = [name for name in os.listdir(temporary) if name.startswith("sidestream")]
    check(not left, f"left behind: {left}")
    check(f"step of gpt2-tiny, {ranks} rank(s) x 1 thread(s)" in output and ": 16 steps after 4 to warm up" in output, output)
    median, low, high = (float(re.search(pattern, output)[1]) for pattern in
                         (r"step time +([\d.]+) ms \(median", r"95 %: ([\d.]+) to", r"95 %: [\d.]+ to ([\d.]+) ms"))
    check(0 <= low <= median <= high and median > 0, output)
    tokens = float(re.search(r"tokens/s +([\d.]+)", output)[1])
    check(agrees(tokens, ranks * 2 * 32 / (median * 1e-3)), f"{tokens} of {median} ms\n{output}")
    exposed = re.search(r"exposed communication +(.*)", output)[1]
    check("none, there is one rank" in exposed if ranks == 1 else float(exposed.split()[0]) > 0, output)
    check("TFLOP/s" in output and "has not measured this machine yet" in output, output)


def check_step_keeps_the_run_that_is_named(root):
    run(1, [BINARY, "bench", "ceilings", "--seconds", "0.01"])
    output = run(1, [BINARY, "bench", "step", *TINY, "--steps", "8", "--warm-up", "4", "--run-dir", root / "kept"])
    check((root / "kept/metrics.jsonl").exists() and "too few steps for an interval" in output, output)
    check(re.search(r"TFLOP/s, [\d.]+ % of what `bench ceilings` measured", output), output)


def check_refusals():
    for words, flags in ((["--sizes", "found '4q' in '1m,4q'", "such as 4k,25m,1g"], ["allreduce", "--sizes", "1m,4q"]),
                         (["--dtype", "fp32, bf16, fp16, int64", "'fp8'"], ["allreduce", "--dtype", "fp8"]),
                         (["--device cpu and --backend nccl"], ["overlap", "--device", "cpu", "--backend", "nccl"]),
                         (["unknown flag '--modle'", "--model"], ["step", "--modle", "gpt2-tiny"]),
                         (["--replace", "bench ceilings"], ["overlap", "--replace", "on"]),
                         (["--threads", "bench overlap"], ["allreduce", "--threads", "2"]),
                         (["expected one of ceilings, allreduce, allgather, reducescatter, overlap, step"], ["floors"])):
        done = subprocess.run([str(BINARY), "bench", *flags], env=environment(), capture_output=True, text=True, check=False)
        check(done.returncode == 2 and all(word in done.stderr for word in words), f"{flags}: {done}")
    for subject in ("allreduce", "allgather", "reducescatter", "overlap"):
        alone = subprocess.run([str(BINARY), "bench", subject], env=environment(), capture_output=True, text=True, check=False)
        check(alone.returncode == 2 and f"mpirun -np 2 --bind-to none sidestream bench {subject}" in alone.stderr, f"{alone}")


def ranks_that_hear():
    """Of those that main's folder marks: a process of the launcher that is not yet the program hears with the launcher's ears."""
    found = []
    for pid in processes_with(f"XDG_CACHE_HOME={os.environ['XDG_CACHE_HOME']}"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            is_rank = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"{BINARY}\0".encode())
            found += [pid] if is_rank and catches_usr1(pid) else []
    return found


def check_stops(flags, words):
    """SIGUSR1, which launch/run and batch systems send: what is under way is finished, and the exit code says that it was stopped."""
    with running(mpirun(2, [BINARY, "bench", *flags]), environment()) as process:
        wait_until(process, lambda: len(ranks_that_hear()) == 2, "both ranks hear of requests")
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=60)
    check(process.returncode == 75 and all(word in output for word in words), f"{process.returncode}\n{output}")


def main():
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        check_refusals()
        check_collectives()
        check_overlap()
        for ranks in (1, 2):
            check_step(ranks)
        check_step_keeps_the_run_that_is_named(pathlib.Path(name))
        check_stops(["allreduce", "--sizes", "1m,64k", "--seconds", "600", "--device", "cpu"], ["1m"])
        check_stops(["ceilings", "--seconds", "600", "--device", "cpu"], ["not kept: asked to stop"])
        check_stops(["overlap", "--sizes", "1m,64k", "--seconds", "600", "--device", "cpu", "--threads", "1"], ["1m"])


if __name__ == "__main__":
    main()
