"""The light recorder: training is the same with it, its files are what happened, and they are there when they are needed:
at the end, on SIGUSR2, and when a collective hangs."""

import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from figures import check_figures, pretend_ceilings
from privacy import check_nothing_private
from support import (BINARY, BUILD, ROOT, SMALL, TINY, check, completed, environment, faulty_environment, losses, make_data, metrics,
                     mpirun, processes_of_ranks, running, train, undisturbed, wait_for_step, wait_until, workspace)

RANKS, STEPS = 2, 22
SECRET = "sidestream-test-5d41402abc"  # stands for a key in the environment
TRACE = BINARY.parent / "sidestream-trace"


def traces(run_dir):
    return sorted(pathlib.Path(run_dir).glob("trace/*/*.pt.trace.json.gz"))


def read(file):
    with gzip.open(file, "rt") as text:
        return json.load(text)


def ranges(trace, name=None):
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and (name is None or event["name"] == name)]


def report(folder):
    done = subprocess.run([TRACE, "report", folder, "--json", folder / "report.json"], capture_output=True, text=True)
    check(done.returncode == 0, f"report of {folder}: {done.stdout}{done.stderr}")
    return json.loads((folder / "report.json").read_text())


def process_of_rank(run_dir, rank):
    found = processes_of_ranks(run_dir, rank)
    check(len(found) == 1, f"{run_dir}: rank {rank} has the processes {found}")
    return found[0]


def check_no_secrets(run_dir):
    """Nothing of the environment is in any file of the run."""
    files = [file for file in pathlib.Path(run_dir).rglob("*") if file.is_file()]
    check(len(files) > 5, f"{run_dir}: only {files}")
    for file in files:
        content = gzip.open(file).read() if file.suffix == ".gz" else file.read_bytes()
        check(SECRET.encode() not in content, f"{file} holds a value of the environment")


def check_same_losses(root, flags):
    train(RANKS, root / "off", flags + ["--steps", str(STEPS)])
    train(RANKS, root / "on", flags + ["--steps", str(STEPS), "--record", "on", "--sample-hz", "50", "--ranges", "layers"])
    check(losses(root / "off") == losses(root / "on"), "losses differ with the recorder on")
    check(not (root / "off/trace").exists(), "a run that records nothing wrote a trace")


def check_files(run_dir):
    files = traces(run_dir)
    check([file.name for file in files] == [f"node0_{rank:05}.{STEPS}.pt.trace.json.gz" for rank in range(RANKS)],
          f"found {files}")
    for rank, file in enumerate(files):
        trace = read(file)
        check(trace["distributedInfo"] == {"backend": "mpi", "rank": rank, "world_size": RANKS}, trace["distributedInfo"])
        check(trace["sidestream"]["dropped_ranges"] == 0, "ranges were dropped")
        steps = [event["name"] for event in ranges(trace) if event["name"].startswith("ProfilerStep#")]
        check(steps == [f"ProfilerStep#{step}" for step in range(1, STEPS + 1)], f"steps {steps}")
        for phase in ("data", "forward", "backward", "optimizer"):
            check(len(ranges(trace, phase)) == STEPS, f"{len(ranges(trace, phase))} times {phase}")
        check(any(event["name"].startswith("transformer.h.0") for event in ranges(trace)), "no layers")
        check(any(event["name"] == "load" for event in ranges(trace)), "no range of a loader thread")
        buckets = [event for event in ranges(trace, "allreduce") if event["args"]["bucket"] >= 0]
        check(len(buckets) >= STEPS and all(event["args"]["payload bytes"] > 0 for event in buckets), "no buckets")
        counters = {event["name"] for event in trace["traceEvents"] if event["ph"] == "C"}
        check({"process cpu [%]", "memory [MiB]", "network [MiB/s]"} <= counters, f"counters {counters}")
    clocks = json.loads((files[0].parent / "clock.json").read_text())
    check([len(rank["samples"]) for rank in clocks["ranks"]] == [48, 48], "no clock samples")
    check_nothing_private(run_dir)
    check_no_secrets(run_dir)


def check_report(run_dir):
    found = report(run_dir)
    check(found["world_size"] == RANKS and found["clock"]["method"] == "same host", found["clock"])
    check(len(found["steps"]) == RANKS * STEPS, f"{len(found['steps'])} steps")
    for step in found["steps"]:
        parts = sum(step[part] for part in ("compute_ns", "exposed_comm_ns", "exposed_memcpy_ns", "idle_ns"))
        check(parts == step["window_ns"], f"{step} does not add up")
    check(not found["import"]["skipped"], found["import"])
    # The verdict that every run ends with rests on the same ranges.
    verdict = json.loads((run_dir / "run.json").read_text())["verdict"]
    check(abs(sum(verdict[part] for part in ("io", "cpu", "compute", "comm")) - 1) < 1e-9, verdict)
    account = json.loads((run_dir / "run.json").read_text())["ettr_account"]
    parts = found["metrics"]["ettr_account"]
    check(parts == {key: account[key] for key in parts} and len(parts) == 10, f"{parts} beside {account}")
    plain = [step for step in found["steps"] if step["step"] > 1]
    compute = sum(step["compute_ns"] for step in plain) / sum(step["window_ns"] for step in plain)
    check(abs(compute - verdict["compute"]) < 0.03, f"compute {compute} in the report, {verdict} at the end of the run")


def check_every_second_step(root, flags):
    output = train(RANKS, root / "alternate", flags + ["--steps", str(STEPS), "--record", "alternate"])
    check(losses(root / "off") == losses(root / "alternate"), "losses differ with every second step recorded")
    for file in traces(root / "alternate"):
        steps = [event["name"] for event in ranges(read(file)) if event["name"].startswith("ProfilerStep#")]
        check(steps == [f"ProfilerStep#{step}" for step in range(2, STEPS + 1, 2)], f"steps {steps}")
    check("recording made its steps" in output or "what recording cost its steps" in output, f"no word on what recording cost:\n{output}")
    report(root / "alternate")


def whole_steps(run_dir):
    return [step["step"] for step in report(run_dir)["steps"] if "incomplete" not in step["tags"]]


def check_room_for_ranges(root, flags):
    """What finds no room is told with the room that it needs, and its steps are left out; with that room nothing is lost."""
    long = TINY + flags[len(SMALL):] + ["--steps", "400", "--record", "on", "--record-ranges"]
    output = train(1, root / "narrow", long + ["1024"])
    told = re.search(r"warning: \d+ ranges of rank 0 found no room .* --record-ranges (\d+) \(now 1024\) has room for them all", output)
    check(told, f"no word on ranges that were lost\n{output}")
    whole = whole_steps(root / "narrow")
    check(whole and whole[0] > 1 and whole[-1] == 400, f"whole steps: {whole}")
    output = train(1, root / "wide", long + [told[1]])
    check("found no room" not in output, output)
    check(whole_steps(root / "wide") == list(range(1, 401)), "steps are missing")


def check_verdict_without_recorder(run_dir):
    verdict = json.loads((run_dir / "run.json").read_text())["verdict"]
    check(verdict["word"] in ("io", "cpu", "compute", "comm") and verdict["steps"] == STEPS - 1, verdict)
    check([rank["rank"] for rank in verdict["ranks"]] == list(range(RANKS)), verdict)
    for rank in verdict["ranks"]:
        parts = sum(rank["phases_ms"].values()) + rank["comm_ms"] + rank["other_ms"]
        check(abs(parts - rank["step_ms"]) < 1e-6 and rank["phases_ms"]["backward"] > 0, f"{rank} does not add up")


def check_late_rank(root, flags):
    """At the run's end and in the report of its recording: the rank that makes the others wait, in which phase, at what cost."""
    late = {"rank": 1, "ms": 100}  # far above what a busy machine adds

    def fault_of(place, phase, run_dir):
        command = mpirun(RANKS, [BINARY, "train", "--run-dir", run_dir, *flags, "--steps", "32",
                                 "--inject", f"slow:rank={late['rank']},ms={late['ms']},at={place}", "--record", "on"])
        done = completed(command, 120, faulty_environment(), stderr=subprocess.PIPE)
        check(done.returncode == 0, done.stderr)
        found = json.loads((run_dir / "run.json").read_text())["verdict"]["straggler"]
        if not found or (found["rank"], found["phase"]) != (late["rank"], phase):
            return f"the run's end says {found}"
        slack_ms = 0.2 * late["ms"]  # what else runs here holds up one rank more than the other
        low_ms, high_ms = found["cost_low_ns"] * 1e-6, found["cost_high_ns"] * 1e-6
        if not low_ms - slack_ms < late["ms"] < high_ms + slack_ms:
            return f"cost of {late}: {found}"
        reported = report(run_dir)["stragglers"]
        if [(one["rank"], one["phase"]) for one in reported] != [(late["rank"], phase)]:
            return f"the report says {reported}"
        words = "other work of the host" if phase == "other" else phase
        check(f"straggler: rank 1, in {words}: costs the others" in done.stdout + done.stderr, done.stdout + done.stderr)
        return None

    for place, phase in ("data", "data"), ("forward", "forward"), ("update", "other"):
        undisturbed(f"late in {place}", lambda number: fault_of(place, phase, root / f"late-{place}-{number}"))


def check_dump_on_request(root, flags):
    """SIGUSR2 to launch/run: every rank writes and goes on; SIGUSR1 saves and stops. No time is in two files."""
    run_dir = root / "asked"
    command = [ROOT / "launch/run", "-np", "2", "--build", BINARY.parent, "--", "train", "--run-dir", run_dir, *flags,
               "--steps", "100000", "--record", "on"]
    with running(command, environment()) as process:
        wait_for_step(process, run_dir, 5)
        process.send_signal(signal.SIGUSR2)
        wait_until(process, lambda: len(traces(run_dir)) >= 2, "two files after SIGUSR2")
        reached = metrics(run_dir)[-1]["step"]
        wait_for_step(process, run_dir, reached + 3)
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=120)
    check(process.returncode == 75, f"exit code {process.returncode}\n{output}")
    check(len(traces(run_dir)) == 4, f"files {traces(run_dir)}")
    check(len(list((run_dir / "trace/asked_0001").iterdir())) == 2, f"files of the request: {traces(run_dir)}")
    check(len(list((run_dir / "flight").glob("*/rank_*.json"))) == 2, "no stacks of the request")
    check_nothing_private(run_dir)
    report(run_dir)  # which refuses a rank that is twice at one time
    numbers = {}
    for file in traces(run_dir):
        for event in ranges(read(file)):
            if event["name"].startswith("ProfilerStep#"):
                numbers.setdefault(file.name.split(".")[0], []).append(int(event["name"][13:]))
    last = metrics(run_dir)[-1]["step"]
    for rank, steps in numbers.items():
        check(sorted(steps) == list(range(1, last + 1)), f"{rank}: steps {sorted(steps)} of {last}")


def check_request_in_a_window(root, flags):
    """SIGUSR2 in a window of the profiler: its timeline will have it, somebody says so, and the next request has the next number."""
    run_dir = root / "asked-in-window"
    command = [ROOT / "launch/run", "-np", "2", "--build", BINARY.parent, "--", "train", "--run-dir", run_dir, *flags, "--steps", "100000",
               "--record", "on", "--profile", "wait=0,warmup=0,active=60,repeat=1", "--inject", "slow:ms=40"]
    with running(command, faulty_environment()) as process:
        wait_for_step(process, run_dir, 5)
        process.send_signal(signal.SIGUSR2)
        wait_until(process, lambda: len(list((run_dir / "flight").glob("*/rank_*.json"))) == 2, "stacks of the request")
        wait_for_step(process, run_dir, 65)
        check(not list(run_dir.glob("trace/asked_*")), f"no file of its own in a window: {traces(run_dir)}")
        process.send_signal(signal.SIGUSR2)
        wait_until(process, lambda: len(list(run_dir.glob("trace/asked_0002/*.gz"))) == 2, "two files of the second request")
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=120)
    check(process.returncode == 75, f"exit code {process.returncode}\n{output}")
    check("asked for what was recorded: it will be in the timeline of this window" in output, output)


def check_dump_of_a_hang(root, flags):
    """A rank stops; the other one's deadline passes: it leaves behind what it was waiting for. A rank that happens to be stopped inside the
    collective is in it as the other one is, and nobody can be blamed: then again."""
    for attempt in range(4):
        run_dir = root / f"hang-{attempt}"
        hang_of_a_stopped_rank(run_dir, flags)
        found = report(run_dir)
        if found["hang"]["awaited"]:
            return check_blame(run_dir, found)
    check(False, "the rank was stopped inside a collective four times")


def hang_of_a_stopped_rank(run_dir, flags):
    command = mpirun(RANKS, [BINARY, "train", "--run-dir", run_dir, *flags, "--steps", "100000", "--record", "on",
                             "--timeout-step", "3"])
    with running(command, environment()) as process:
        # The stopped rank, let go at the end, may still finish its step: one that is told apart among so many.
        wait_for_step(process, run_dir, 30)
        os.kill(process_of_rank(run_dir, 1), signal.SIGSTOP)
        output, _ = process.communicate(timeout=60)
    check(process.returncode == 6, f"exit code {process.returncode}\n{output}")


def check_blame(run_dir, found):
    files = traces(run_dir)
    check(any("_00000." in file.name for file in files), f"no file of rank 0: {files}")
    trace = read([file for file in files if "_00000." in file.name][0])
    hanging = [event for event in ranges(trace) if event.get("args", {}).get("open")]
    names = {event["name"] for event in hanging}
    check(any(name.startswith("ProfilerStep#") for name in names), f"open at the end: {names}")
    waiting = [event for event in hanging if "bucket" in event["args"]]
    check(len(waiting) == 1 and waiting[0]["dur"] > 2.5e6, f"in flight at the end: {waiting}")
    hang = found["hang"]
    # The stopped rank may leave a recording when it is ended, or none.
    check(hang["is_sure"] and hang["awaited"] == [1], f"hang {hang}")
    waits = hang["ranks"][-1]
    check(waits["rank"] == 0 and waits["collective"] == waiting[0]["name"] and waits["since_ns"] > 2.5e9, f"hang {hang}")
    longest = max(step["window_ns"] for step in found["steps"] if not step["tags"])
    check(longest < 2.5e9, f"a step of the means took {longest} ns")
    check(not any(one["rule"] == "not-overlapped" for one in found["advice"]), str(found["advice"]))


def check_own_failure(root, flags):
    """A run that fails leaves its recording too, and what its first rank knows of where the time went."""
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    output = train(RANKS, root / "fails", flags + ["--steps", "50", "--inject", "nan:rank=1,step=30", "--record", "on"], expect=5)
    check("rank 0 alone: time of a step" in output, f"no verdict:\n{output}")
    verdict = json.loads((root / "fails/run.json").read_text())["verdict"]
    check(verdict and verdict["rank_alone"] == 0, f"the verdict of run.json: {verdict}")
    line = next(line for line in output.splitlines() if "rank 0 alone" in line)
    check(f"communication {round(verdict['comm'] * 100)} %" in line, f"{line}\n{verdict}")
    check(len(traces(root / "fails")) == RANKS, f"found {traces(root / 'fails')}")


def check_refusals(root, flags):
    profile = ["--profile", "active=1"], "one profiler"
    for variable, (flag, word) in (("NVTX_INJECTION64_PATH", (["--record", "on"], "--record")), ("NVTX_INJECTION64_PATH", profile),
                                   ("CUDA_INJECTION64_PATH", profile), ("NV_NSIGHT_INJECTION_TRANSPORT_TYPE", profile)):
        env = environment() | {variable: str(root / "tool.so")}
        done = subprocess.run(mpirun(1, [BINARY, "train", "--run-dir", root / "refused", *flags, "--steps", "1", *flag]),
                              env=env, text=True, capture_output=True, timeout=60)
        check(done.returncode == 2 and word in done.stderr, f"{variable}, {flag}: {done.returncode} {done.stderr}")
    check(not (root / "refused").exists(), "a refused call left a run directory behind")


def check_clock_set_back(root, flags):
    """The time of day goes back by an hour in the middle of a run: nothing ends, its steps are in order, its times add up."""
    run_dir, now = root / "clock", root / "now"
    env = faulty_environment() | {"LD_PRELOAD": str(BUILD / "tests/launch/training/libsidestream_clock_set_back.so"),
                                  "SIDESTREAM_TEST_CLOCK_FILE": str(now)}
    slow = ["--steps", "40", "--record", "on", "--inject", "slow:ms=30", "--checkpoint-every", "10"]
    begin = time.monotonic()
    with running(mpirun(RANKS, [BINARY, "train", "--run-dir", run_dir, *flags, *slow]), env) as process:
        wait_for_step(process, run_dir, 15)
        now.touch()
        output, _ = process.communicate(timeout=120)
    lasted_s = time.monotonic() - begin
    check(process.returncode == 0, f"ended with {process.returncode}\n{output}")
    record = json.loads((run_dir / "run.json").read_text())
    account = record["ettr_account"]
    check(all(value >= -1e-3 for value in account.values()) and account["wall_s"] <= lasted_s + 1, f"{account} of {lasted_s} s")
    check(account["productive_s"] > 40 * 0.03 and 0 < record["wall_s"] <= lasted_s, f"{account}, {record['wall_s']} of {lasted_s} s")
    steps = sorted(report(run_dir)["steps"], key=lambda step: step["start_ns"])
    for rank in range(RANKS):
        of_rank = [step["step"] for step in steps if step["rank"] == rank]
        check(of_rank == list(range(1, 41)), f"rank {rank}: {of_rank}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        pretend_ceilings(root)
        os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
        flags = SMALL + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "4"]
        check_same_losses(root, flags)
        check_files(root / "on")
        check_report(root / "on")
        check_figures(root / "on")
        check_verdict_without_recorder(root / "off")
        check_late_rank(root, flags)
        check_every_second_step(root, flags)
        check_room_for_ranges(root, flags)
        check_dump_on_request(root, flags)
        check_request_in_a_window(root, flags)
        check_dump_of_a_hang(root, flags)
        check_own_failure(root, flags)
        check_clock_set_back(root, flags)
        check_refusals(root, flags)


main()
