"""`sidestream doctor`, as a person would call it: alone, on two ranks, on a folder that refuses, and stopped."""
import contextlib
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from running import running, stop  # noqa: E402
from support import BINARY, check, environment, run, workspace  # noqa: E402

LEVELS = {"ok", "note", "warning", "error"}


def findings_of(file):
    report = json.loads(file.read_text())
    for finding in report["findings"]:
        check(set(finding) == {"name", "level", "found", "expected", "remedy", "where"}, f"fields of {finding}")
        check(finding["level"] in LEVELS and finding["found"], f"finding {finding}")
        check(finding["level"] == "ok" or (finding["expected"] and finding["remedy"]), f"no remedy: {finding}")
    check(sum(report["counts"].values()) == len(report["findings"]), f"counts {report['counts']}")
    return report, {finding["name"]: finding for finding in report["findings"]}


def test_alone(folder):
    output = run(1, [BINARY, "doctor", "--device", "cpu", "--run-dir", folder / "runs/a", "--json", folder / "alone.json"])
    report, findings = findings_of(folder / "alone.json")
    check(report["can_train"] and report["world_size"] == 1, f"report {report}")
    check("launch/run -np N -- doctor" in findings["ranks"]["remedy"], f"{findings['ranks']}")
    for name in ("program", "libtorch", "mpi", "processor", "binding", "memory", "shared-memory", "writing"):
        check(name in findings, f"{name} was not looked at: {sorted(findings)}")
    check(output.splitlines()[-1].startswith("Training can start: "), output)
    check(all(len(line) <= 100 for line in output.splitlines()), f"lines above 100 columns\n{output}")
    check("\033" not in output, "colours in a log")
    check(not (folder / "runs").exists(), "the folder of a run was made")


def test_two_ranks(folder):
    output = run(2, [BINARY, "doctor", "--device", "cpu", "--run-dir", folder, "--json", folder / "two.json"])
    report, findings = findings_of(folder / "two.json")
    check(report["world_size"] == 2 and len(report["hosts"]) == 1, f"report {report}")
    check(findings["ranks"]["level"] == "ok" and "sums are right" in findings["ranks"]["found"], f"{findings['ranks']}")
    check("bus bandwidth" in findings["all-reduce"]["found"], f"{findings['all-reduce']}")
    check("memory that copies at" in findings["all-reduce"]["expected"], f"{findings['all-reduce']}")
    check(output.count("Training can start") == 1, f"said by several ranks\n{output}")


def test_what_stops_a_training(folder):
    (folder / "file").write_text("")
    output = run(1, [BINARY, "doctor", "--device", "cpu", "--run-dir", folder / "file/run"], expect=2)
    check("Training cannot start" in output and "cannot create a file in" in output, output)
    output = run(1, [BINARY, "doctor", "--device", "cuda", "--run-dir", folder], expect=2)
    check("has no usable GPU" in output, output)  # the tests hide what GPUs there are
    output = run(2, [BINARY, "doctor", "--device", "cpu", "--json", folder / "nowhere/a.json"], expect=2)
    check(output.count("cannot write") == 1, output)
    output = run(1, [BINARY, "doctor", "--run-dri", "x"], expect=2)
    check("Did you mean --run-dir?" in output, output)


def test_interruption(folder):
    """Before it can note the signal, and while it writes into the folder of the run: exit code 75, and nothing in that folder."""
    where = folder / "probed"
    where.mkdir()
    words = [BINARY, "doctor", "--device", "cpu", "--run-dir", where]
    with running(words, environment(), preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])) as process:
        process.send_signal(signal.SIGUSR1)
        check_stopped(process, where)
    for _ in range(5):
        with running(words, environment()) as process:
            if not stopped_while_it_writes(process, where):
                continue
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGCONT)
            return check_stopped(process, where)
    check(False, f"doctor was never seen to write into {where}")


def stopped_while_it_writes(process, where):
    """The file that it tries has no name where the file system has such files: it is seen among those that are open."""
    while process.poll() is None:
        if tries(process, where):
            return stop(process) and tries(process, where)
        time.sleep(0.001)
    return False


def tries(process, where):
    with contextlib.suppress(OSError):  # it ends
        return any(where in file.readlink().parents for file in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())
    return False


def check_stopped(process, where):
    output, _ = process.communicate(timeout=60)
    check(process.returncode == 75, f"exit code {process.returncode}\n{output}")
    check("stopped before everything" in output, output)
    check(not list(where.iterdir()), f"left behind: {list(where.iterdir())}")


def main():
    with workspace() as name:
        for test in [value for key, value in globals().items() if key.startswith("test_")]:
            test(pathlib.Path(name))
            print("passed", test.__name__, flush=True)


if __name__ == "__main__":
    main()
