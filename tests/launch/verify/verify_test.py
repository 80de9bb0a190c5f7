"""`sidestream verify`, as a person would call it: two ranks, a tiny model, a few steps."""
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from support import BINARY, BUILD, check, completed, environment, make_data, running, undisturbed, wait_for_step, workspace  # noqa: E402

TIMEOUT_S = 400
SLEEPING = BUILD / "tests/launch/recording/sidestream_slow_rank"  # the same program, with a sleep where SIDESTREAM_TEST_SLEEP says


def command(data, out, *flags, config):
    return [str(word) for word in [BINARY, "verify", "--config", config, "-np", "2", "--out", out,
                                   "--common", f"--data {data}", *flags]]


def call(words, expect, **more):
    done = completed(words, TIMEOUT_S, {**environment(), **more})
    check(done.returncode == expect, f"expected exit code {expect}, found {done.returncode} from {words}\n{done.stdout}")
    return done.stdout


def write_config(folder):
    config = folder / "train.cfg"
    config.write_text("model = gpt2-tiny\nsequence-length = 32\nbatch-size-per-rank = 2\nthreads = 1\n")
    return config


def test_two_sides_are_compared(data, folder, config):
    words = command(data, folder / "ab", "--base", "--overlap off", "--new", "", "--blocks", "2", "--steps", "8",
                    "--warm-up", "2", config=config)
    output = call(words, 0)
    report = json.loads((folder / "ab/report.json").read_text())
    check(report["kind"] == "verification" and len(report["blocks"]) == 2, f"unexpected report {report}")
    check([block["seed"] for block in report["blocks"]] == ["1", "2"], f"seeds of {report['blocks']}")
    check(report["convergence"]["verdict"] == "identical", f"overlap changed the losses: {report['convergence']}")
    check(report["convergence"]["curve"]["points"] == 8, "not every step was compared")
    check(report["convergence"]["final_val_loss"] is not None, "no validation loss")
    changed = [one["field"] for one in report["differences"] if one["kind"] == "compared"]
    check("overlap" in changed, f"differences {report['differences']}")
    total = sum(part["change_ms"] for part in report["parts"])
    step = report["step_time"]["new_ms"] - report["step_time"]["base_ms"]
    check(abs(total - step) < 1e-6, f"the parts add up to {total}, the step changed by {step}")
    check_profiles(report, folder / "ab")
    for name in ("report.html", "report.md", "report.txt", "../decisions.jsonl"):
        check((folder / "ab" / name).stat().st_size > 0, f"{name} is empty")
    check(all(len(line) <= 100 for line in (folder / "ab/report.txt").read_text().splitlines()), "lines above 100 columns")
    check(not list((folder / "ab/runs").glob("*/checkpoints")), "weights are left behind")
    decision = json.loads((folder / "decisions.jsonl").read_text().splitlines()[0])
    check("--new '' " in report["command"], f"the command cannot be called again: {report['command']}")
    check(decision["command"].startswith(str(BINARY)) and "accepted" in decision, f"decision {decision}")
    check("\r" not in output and "\033" not in output, "redrawn lines in a log")

    again = call(words, 0)
    check(again.count("finished before") == 6, f"finished runs were made again:\n{again}")
    more = call(words + ["--seed", "7"], 2)
    check("another verification" in more, more)


def check_profiles(report, out):
    """Profiled runs beside the timed ones: both sides explained, and the explanation adds up."""
    for side in ("base", "new"):
        profile = report["profiles"][side]
        check(profile["verdict"] and len(profile["top_ops"]) == 5 and profile["step_ms"] > 0, f"profile of {side}: {profile}")
        whole = json.loads((out / f"runs/profile_{side}/report/report.json").read_text())
        check(len(whole["advice"]) == len(profile["advice"]), "the whole report has other advice")
        check([step["step"] for step in whole["steps"] if step["rank"] == 0] == [8, 9, 10], f"profiled steps {whole['steps']}")
        check(whole["metrics"]["steps_without_profiler"] >= 3, "bounds need steps without the profiler")
    for kind in ("parts", "phases", "operations"):
        sums = [sum(part[key] for part in report["trace"][kind]) for key in ("base_ms", "new_ms")]
        wanted = [report["profiles"][side]["step_ms"] for side in ("base", "new")]
        check(all(abs(a - b) < 1e-3 for a, b in zip(sums, wanted)), f"{kind} add up to {sums}, the steps took {wanted}")
    # Each side rounds two means down to a nanosecond, that of the step and that of the collectives: a change is off by two at most.
    exposed = [part["change_ms"] for part in report["trace"]["parts"] if part["name"] == "exposed communication"]
    by_bucket = sum(part["change_ms"] for part in report["trace"]["collectives"])
    check(len(report["trace"]["collectives"]) > 1, f"buckets of the gradients are missing: {report['trace']['collectives']}")
    check(len(exposed) == 1 and abs(by_bucket - exposed[0]) < 2e-6, f"collectives add up to {by_bucket}, exposed communication changed by {exposed}")
    check({"forward", "backward", "optimizer"} <= {part["name"] for part in report["trace"]["phases"]}, "phases are missing")
    check(not list((out / "runs").glob("block_*/trace")), "a timed run was profiled")
    page, text = (out / "report.html").read_text(), (out / "report.md").read_text()
    check("base: " in page and '"timeline"' in page, "the page has no timeline")
    for heading in ("What was slow: the base", "What is left: the new side", "Tried and dropped", "How it was made", "Speed-up"):
        check(heading in text, f"{heading} is not in report.md")


def test_without_profiled_runs(data, folder, config):
    words = command(data, folder / "plain", "--blocks", "2", "--steps", "4", "--warm-up", "1", "--profile", "off",
                    config=config)
    output = call(words, 0)
    check("Profiled runs: none, --profile off" in output, output)
    report = json.loads((folder / "plain/report.json").read_text())
    check(report["profiles"]["base"] is None and report["trace"] is None, "profiles that were not made")
    check(len(report["trials"]) == 1 and "--overlap off" in report["trials"][0]["base"], f"the log of before is not shown: {report['trials']}")
    check(not list((folder / "plain/runs").glob("profile_*")), "--profile off made profiled runs")


def test_waiting_for_input_is_proved(data, folder, config):
    undisturbed("waiting for input", lambda number: fault_of_the_proof(data, folder / f"apart{number}/proof", config))


def fault_of_the_proof(data, out, config):
    words = [str(word) for word in [SLEEPING, "verify", "--config", config, "--out", out, "--common", f"--data {data} --loader-workers 0 --prefetch 0",
                                    "--base", "--fused-optimizer off", "--new", "", "--blocks", "2", "--steps", "6", "--warm-up", "1"]]
    output = call(words, 0, SIDESTREAM_TEST_SLEEP="-1:load:200")
    if "6 more runs, with --fix-batch on in turns" not in output:  # the profiled steps show something else than input
        return output
    report = json.loads((out / "report.json").read_text())
    proof = report["proof"]
    check(proof["ratio_high"] < 1 and "is what the input costs" in proof["reason"], f"proof {proof}")
    # Whether gains stay below the bounds is measured by tests/soak/faults.py: here a step is nearly all sleep.
    check(50 < proof["gain_ceiling_pct"] < 100 and proof["ratio"] < 0.5, f"what the advice promised: {proof}")
    check("Proof of the advice" in (out / "report.txt").read_text(), "the report does not show the proof")
    log = [json.loads(line) for line in (out / "../decisions.jsonl").read_text().splitlines()]
    check(len(log) == 2 and "--fix-batch on" in log[0]["new"] and not log[0]["accepted"], f"the log: {log}")
    check([line["proof"] for line in log] == [True, False], f"which line is of the proof: {log}")
    check(all((pathlib.Path(line["reports"]) / "report.json").exists() for line in log), f"folders without reports: {log}")
    again = call(words, 0, SIDESTREAM_TEST_SLEEP="-1:load:200")
    check(again.count("finished before") == 12, f"finished runs were made again:\n{again}")
    check(json.loads((out / "report.json").read_text())["trials"] == [], "its own proof is a trial of before")
    return None


def test_sides_that_cannot_be_compared(data, folder, config):
    words = command(data, folder / "refused", "--new", "--sequence-length 16", "--steps", "3", "--warm-up", "1",
                    "--blocks", "1", config=config)
    output = call(words, 2)
    check("cannot be compared" in output and "sequence-length is 32 and 16" in output, output)
    check(not (folder / "refused").exists(), "a refused verification left a folder")
    forced = call(words + ["--force", "--fail-if-slower", "5", "--profile", "off"], 12)
    check("inconclusive" in forced, forced)


def test_bad_flags(data, folder, config):
    output = call(command(data, folder / "x", "--new", "--overlop on", config=config), 2)
    check("new side" in output and "--overlap" in output, output)
    output = call(command(data, folder / "x", "--new", "--steps 5", config=config), 2)
    check("--steps is set by verify" in output, output)
    output = call(["99999" if word == "2" else word for word in command(data, folder / "x", config=config)], 2)
    check("--np 99999: the memory of this host holds" in output, output)
    (folder / "file").write_text("")
    output = call(command(data, folder / "file/out", config=config), 2)
    check("--out: cannot make" in output, output)


def test_log_is_checked_before_the_runs(data, folder, config):
    (folder / "in the way").write_text("")
    output = call(command(data, folder / "unlogged", "--log", folder / "in the way/log.jsonl", config=config), 2)
    check("--log: cannot write" in output and not (folder / "unlogged").exists(), output)


def test_a_folder_is_found_for_the_same_command(data, folder, config):
    words = [str(BINARY), "verify", "--config", str(config), "--blocks", "1", "--dry-run", "--common", f"--data {data}"]
    first, again = call(words, 0), call(words, 0)
    other = call([*words, "--seed", "9"], 0)
    name = first.split("--run-dir ")[1].split("/runs/")[0]
    check(name.startswith("runs/verify_") and name in again and name not in other, f"{first}\n{other}")


def test_a_base_that_fails(data, folder, config):
    output = call(command(data, folder / "nan", "--base", "--algorithm sgd --lr 1000 --grad-clip 0", "--steps", "6", "--warm-up", "1",
                          config=config), 5)
    check("block 1, base failed with exit code 5" in output and "\n  sidestream" in output, output)
    report = json.loads((folder / "nan/report.json").read_text())
    check(report["step_time"]["verdict"] == "none" and report["decision"]["exit_code"] == 5, str(report))
    check(report["failure"]["run"] == "block 1, base" and report["failure"]["last_lines"], str(report))
    for name in ("report.md", "report.txt", "report.html"):
        check("block 1, base" in (folder / "nan" / name).read_text(), name)
    last = json.loads((folder / "decisions.jsonl").read_text().splitlines()[-1])
    check(not last["accepted"] and last["reason"] == "the run of block 1, base failed with exit code 5", str(last))
    check(last["version"] == report["version"] != "", f"a failed verification without its version: {last}")


def test_a_base_that_is_killed(data, folder, config):
    killed = 128 + signal.SIGKILL
    output = call(command(data, folder / "killed", "--base", "--inject kill:rank=1,step=3", "--steps", "5", "--warm-up", "1",
                          config=config), killed, SIDESTREAM_FAULT_INJECTION="1")
    check(f"block 1, base failed with exit code {killed}" in output and "kill of rank 1 at forward of step 3" in output, output)
    report = json.loads((folder / "killed/report.json").read_text())
    check(report["decision"] == {"accepted": False, "reason": f"the run of block 1, base failed with exit code {killed}",
                                 "exit_code": killed}, str(report["decision"]))
    last = "\n".join(report["failure"]["last_lines"])
    check(report["failure"]["exit_code"] == killed and "kill of rank 1" in last, str(report["failure"]))
    check("kill of rank 1" in (folder / "killed/report.txt").read_text(), "report.txt does not show the last lines")


def test_a_new_side_that_learns_to_no_number(data, folder, config):
    output = call(command(data, folder / "new_nan", "--new", "--algorithm sgd --lr 1000 --grad-clip 0", "--steps", "6", "--warm-up", "1",
                          config=config), 13)
    check("the new side learns worse" in output and "block 1, new failed with exit code 5" in output, output)
    last = json.loads((folder / "decisions.jsonl").read_text().splitlines()[-1])
    check(not last["accepted"] and "--lr 1000" in last["new"] and "learns worse, to no finite number" in last["reason"], str(last))
    report = json.loads((folder / "new_nan/report.json").read_text())
    check(report["decision"]["exit_code"] == 13 and report["failure"]["exit_code"] == 5, str(report))
    check(last["environment"]["processor"] and last["version"], f"the base left a record, and the log has no environment: {last}")


def test_interruption(data, folder, config):
    out = folder / "stopped"
    words = command(data, out, "--base", "--overlap off", "--blocks", "1", "--steps", "60", "--warm-up", "1",
                    "--profile", "off", config=config)
    second = out / "runs/block_001_new/metrics.jsonl"
    with running(words, environment()) as process:
        wait_for_step(process, second.parent, 2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=TIMEOUT_S)
    check(process.returncode == 75, f"expected exit code 75 after Ctrl-C, found {process.returncode}\n{output}")
    check("the same command goes on" in output, output)
    output = call(words, 0)
    check(output.count("finished before") == 1, f"the finished run was made again:\n{output}")

    lines = second.read_text().splitlines(keepends=True)
    for left in ("".join(lines[:20]), lines[0][:20]):
        second.write_text(left)
        output = call(words, 0)
    check(f"{second} lacks its last steps: it is made again" in output, f"a finished run without figures is kept:\n{output}")


def test_dry_run_shows_commands(data, folder, config):
    output = call(command(data, folder / "dry", "--blocks", "2", "--dry-run", config=config), 0).splitlines()
    check("come to the same settings" in output[0], output[0])
    commands, last = output[1:-1], output[-1]
    check(len(commands) == 6 and all(line.startswith("mpirun -np 2 --bind-to none") for line in commands), str(output))
    sides = ["base" if "block_001_base" in line or "block_002_base" in line else "new" for line in commands[:4]]
    check(sides == ["base", "new", "new", "base"], f"the sides do not take turns: {sides}")
    check(all("--profile wait=6,warmup=1,active=3,repeat=1" in line for line in commands[4:]), str(commands[4:]))
    check(not any("--profile" in line for line in commands[:4]), "timed runs are profiled")
    check(last.startswith("4 timed runs of 30 steps, 2 profiled of 11 steps:"), last)
    check(not (folder / "dry").exists(), "--dry-run left a folder")


def test_what_the_file_says_of_a_single_run(data, folder, config):
    """Every run leaves a config.cfg to repeat it with: one that was resumed and recorded, too."""
    own = folder / "config.cfg"
    own.write_text(config.read_text() + "resume = /nobody/saved\nrecord = on\ntarget-val-loss = 0.1\n")
    output = call(command(data, folder / "own", "--blocks", "1", "--dry-run", config=own), 0).splitlines()
    for remark in (f"{own}:5: resume = /nobody/saved is not taken over: every run starts from the beginning",
                   f"{own}:6: record = on is not taken over"):
        check(any(line.startswith(remark) for line in output), f"{remark} is not in {output}")
    commands = [line for line in output if line.startswith("mpirun")]
    check(len(commands) == 4 and all("--resume none" in line and "--record off" in line for line in commands), str(output))
    own.write_text(config.read_text() + "profile = wait=1,warmup=1,active=3\n")
    output = call(command(data, folder / "own", "--dry-run", config=own), 2)
    check(f"{own}:5: profile: timed runs would pay for the profiler" in output, output)


def test_data_that_is_not_made_yet(data, folder, config):
    example = folder / "example.cfg"
    example.write_text(config.read_text() + "data = data/nobody/made\n")
    words = [str(BINARY), "verify", "--config", str(example), "--np", "2", "--out", str(folder / "example"), "--blocks", "1", "--dry-run"]
    output = call(words, 0).splitlines()
    check("data/nobody/made" in output[0] and "--data synthetic" in output[0], output[0])
    check(all("--data synthetic" in line for line in output[2:-1]), str(output))
    named = call([*words, "--common", "--data data/nobody/made"], 0).splitlines()
    check(not any("synthetic" in line for line in named), f"a folder that was asked for is replaced: {named}")


def main():
    with workspace() as name:
        folder = pathlib.Path(name)
        data, config = make_data(folder / "data"), write_config(folder)
        for test in [value for key, value in globals().items() if key.startswith("test_")]:
            test(data, folder, config)
            print("passed", test.__name__, flush=True)


if __name__ == "__main__":
    main()
