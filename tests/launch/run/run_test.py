"""launch/run against a program that only notes its signals: run_test.py ROOT"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
RUN = str(ROOT / "launch" / "run")
sys.path.insert(0, str(ROOT / "tests/launch/training"))
sys.dont_write_bytecode = True
from running import completed, processes_with, running, stop  # noqa: E402

# Behaves as its first argument says; leaves one file a rank with its process id, and one with what it saw.
STUB = """#!/usr/bin/env python3
import os, signal, sys, time

FOLDER = os.environ["FOLDER"]
RANK = os.environ.get("OMPI_COMM_WORLD_RANK", "alone")

def note(kind, text):
    with open(f"{FOLDER}/{kind}.{RANK}", "a") as file:
        print(text, file=file)

def save(*_):
    note("seen", "usr1")
    os._exit(75)

def save_slowly(*_):
    note("saving", "now")
    time.sleep(float(sys.argv[2]))
    note("saved", "all")
    os._exit(75)

mode = sys.argv[1]
if mode == "exit":
    sys.exit(int(sys.argv[2]))
if mode == "say":
    note("seen", "arguments " + " ".join(sys.argv[1:]))
    note("seen", "columns " + os.environ.get("SIDESTREAM_TERMINAL_COLUMNS", "none"))
    sys.exit(0)
if mode == "late":  # not ready for signals before the test has sent one
    note("pid", os.getpid())
    while not os.path.exists(f"{FOLDER}/sent"):
        time.sleep(0.05)
if mode in ("save", "late"):
    signal.signal(signal.SIGUSR1, save)
if mode == "slow_save":
    signal.signal(signal.SIGUSR1, save_slowly)
if mode == "stubborn":
    signal.signal(signal.SIGUSR1, lambda *_: note("seen", "usr1"))
signal.signal(signal.SIGINT, lambda *_: note("seen", "int"))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
if mode != "late":
    note("pid", os.getpid())
while True:
    time.sleep(0.05)
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        program = self.folder / "sidestream"
        program.write_text(STUB)
        program.chmod(0o755)
        self.environment = dict(os.environ, FOLDER=str(self.folder))
        self.environment.pop("SIDESTREAM_TERMINAL_COLUMNS", None)

    def tearDown(self):
        self.temporary.cleanup()

    def command(self, ranks, *words, options=()):
        return [RUN, "-np", str(ranks), "--build", str(self.folder), *options, "--", *words]

    def run_to_end(self, command):
        return completed(command, 60, self.environment, stderr=subprocess.PIPE)

    def launch(self, *words, options=()):
        """Two ranks in a process group of their own, as a shell starts them."""
        return self.enterContext(running(self.command(2, *words, options=options), self.environment, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE))

    def start(self, *words):
        """The same; returns when both are up."""
        process = self.launch(*words)
        self.wait_for(lambda: len(self.pids()) == 2, "both ranks are up")
        return process

    def wait_until_saving(self):
        self.wait_for(lambda: len(list(self.folder.glob("saving.*"))) == 2, "both ranks save")

    def pids(self):
        return [int(path.read_text()) for path in self.folder.glob("pid.*") if path.read_text().strip()]

    def seen(self, rank):
        path = self.folder / f"seen.{rank}"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"never happened: {what}")
            time.sleep(0.05)

    def assert_nothing_is_left(self, pids):
        def alive(pid):
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except FileNotFoundError:
                return False
            return state != "Z"

        self.wait_for(lambda: not any(alive(pid) for pid in pids), "all ranks are gone")

    def fake_mpirun(self, *lines):
        mpirun = self.folder / "mpirun"
        mpirun.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        mpirun.chmod(0o755)
        shutil.copy("/bin/sleep", self.folder / "sidestream")
        self.environment["PATH"] = f"{self.folder}:{os.environ['PATH']}"

    def rank_until_it_was_seen(self):
        """For a fake mpirun: a rank that lives until somebody has looked for it, and rests again. Rests before it was up do not count."""
        sleep = self.folder / "sleep"
        sleep.write_text(f'#!/bin/sh\ncd "{self.folder}"\n[ "$1" != 1 ] || echo >> rests\n'
                         '[ -e up ] || rm -f rests\n'
                         '[ "$(cat rests 2>/dev/null | wc -l)" -lt 2 ] || touch looked\nexec /bin/sleep "$1"\n')
        sleep.chmod(0o755)
        up = f'until grep -qs OMPI_COMM_WORLD_RANK /proc/$!/environ; do /bin/sleep 0.05; done; touch "{self.folder}/up"'
        return (f'OMPI_COMM_WORLD_RANK=0 "{self.folder}/sidestream" 60 & {up}; while [ ! -e "{self.folder}/looked" ]; do /bin/sleep 0.1; done; '
                "/bin/sleep 1; kill $!")

    def test_launcher_that_stays_is_ended(self):
        """For a silent host, or broken down (nobody reaps its rank), when the ranks of this host have gone; one that ends is left alone."""
        rank = self.rank_until_it_was_seen()
        hosts = ["--hosts", "a:1,b:1"]
        for options, end, code, why in ((hosts, "exec sleep 600", 137, "another host does not answer"), (hosts, "wait; exit 6", 6, None),
                                        ([], "exec sleep 600", 137, "it does not end")):
            for file in "looked", "rests", "up":
                (self.folder / file).unlink(missing_ok=True)
            self.fake_mpirun(rank, end)
            done = self.run_to_end(self.command(2, "train", options=[*options, "--patience", "2"]))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual("mpirun stays" in done.stderr, why is not None, done.stderr)
            self.assertIn(f"mpirun stays ({why}): ending it" if why else "", done.stderr)

    def test_launcher_that_starts_no_rank_is_ended(self):
        """It has broken down before it had one: for want of pipes, say, it stays without a process."""
        self.fake_mpirun("exec sleep 600")
        done = self.run_to_end(self.command(2, "train", options=["--patience", "1"]))
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertIn("mpirun has started no rank in 10 s: ending it", done.stderr)

    def test_a_request_ends_a_launcher_that_starts_no_rank(self):
        for own in False, True:
            with self.subTest(own_program=own):
                self.fake_mpirun("trap '' USR1", 'touch "$FOLDER/up"', "exec sleep 600")
                options = ["--program", str(self.folder / "sidestream")] if own else []
                process = self.launch("train", options=options)
                self.wait_for((self.folder / "up").exists, "mpirun has begun")
                process.terminate()
                _, messages = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 75, messages)
                self.assertIn("mpirun has started no rank, and nothing is there to be saved: ending it", messages)
                (self.folder / "up").unlink()

    def test_launcher_of_ranks_that_are_all_elsewhere_is_left_alone(self):
        """As its own configuration has it: it talks to another host. It is asked to stop once its ranks may be there."""
        self.fake_mpirun("exec python3 -c '"
                         "import os, signal, socket, sys, time; "
                         "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(75)); "
                         'there = socket.create_server(("127.0.0.1", 0)); '
                         "here = socket.create_connection(there.getsockname()); "
                         'open(os.environ["FOLDER"] + "/up", "w").close(); '
                         "time.sleep(30); sys.exit(3)'")
        process = self.launch("train", options=["--program", str(self.folder / "sidestream"), "--patience", "1"])
        self.wait_for((self.folder / "up").exists, "mpirun has begun")
        process.terminate()
        _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, messages)
        self.assertNotIn("no rank", messages)

    def test_looks_at_many_ranks_say_nothing(self):
        ranks = f'for rank in $(seq 40); do OMPI_COMM_WORLD_RANK=0 "{self.folder}/sidestream" 60 & all="$all $!"; done'
        self.fake_mpirun(ranks, self.rank_until_it_was_seen(), "/bin/sleep 3; kill $all")
        done = self.run_to_end(self.command(2, "train"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if "you are root" not in line], [])

    def test_launcher_that_stays_is_ended_where_nobody_reads_any_more(self):
        """Ctrl-C has ended `tee`, and the whole group was asked to end: the one that looks after mpirun goes on."""
        self.fake_mpirun("trap '' USR1", self.rank_until_it_was_seen(), "exec sleep 600")
        process = self.launch("train", options=["--patience", "2"])
        self.wait_for((self.folder / "looked").exists, "somebody has looked for the rank")
        process.stderr.close()
        os.killpg(process.pid, signal.SIGHUP)
        self.assertEqual(process.wait(timeout=30), 137)

    def test_host_that_cannot_be_reached_is_told(self):
        agent = self.folder / "agent"
        agent.write_text('#!/bin/sh\necho "ssh: Could not resolve hostname $1" >&2\nexit 255\n')
        agent.chmod(0o755)
        words = [word for flag in ("--mca", "plm_rsh_agent", str(agent)) for word in ("--mpi-arg", flag)]
        done = self.run_to_end(self.command(2, "say", options=["--hosts", "nowhere.invalid:2", *words]))
        self.assertEqual(done.returncode, 255, done.stderr)
        self.assertIn("Could not resolve hostname nowhere", done.stderr)
        self.assertIn("'ssh HOST true' has to work", done.stderr)
        self.assertEqual(list(self.folder.glob("seen.*")), [])

    def test_its_end_leaves_no_process(self):
        """A supervisor waits for what is left, before it starts again."""
        self.fake_mpirun("/bin/sleep 0.5", "exit 6")
        sleep = self.folder / "sleep"  # of the looks at mpirun
        sleep.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
        sleep.chmod(0o755)
        mine = f"FOLDER={self.folder}"
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in processes_with(mine)])
        self.assertEqual(self.run_to_end(self.command(2, "train")).returncode, 6)
        self.wait_for(lambda: not processes_with(mine), "what it killed is gone")

    def test_without_procps(self):
        """Small images have none: signals find the ranks, and what stays is ended, all the same."""
        tools = self.folder / "tools"
        tools.mkdir()
        for folder in "/usr/bin", "/bin":
            for tool in pathlib.Path(folder).iterdir():
                if tool.name not in ("ps", "pgrep", "pkill") and not (tools / tool.name).exists():
                    (tools / tool.name).symlink_to(tool)
        self.environment["PATH"] = str(tools)
        process = self.start("save")
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=30)
        self.assertEqual((process.returncode, self.seen(0), self.seen(1)), (75, ["usr1"], ["usr1"]), messages)
        for file in [*self.folder.glob("pid.*"), *self.folder.glob("seen.*")]:
            file.unlink()
        process = self.start("stubborn")
        pids = self.pids()
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            self.wait_for(lambda: self.seen(0) and self.seen(1), "the first signal arrived")
        _, messages = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, messages)
        self.assertNotIn("not found", messages)
        self.assert_nothing_is_left(pids)

    def test_setpriv_of_an_old_system(self):
        """It knows no --pdeathsig, without which ranks run all the same."""
        setpriv = self.folder / "setpriv"
        setpriv.write_text("#!/bin/sh\necho \"setpriv: unrecognized option '$1'\" >&2\nexit 1\n")
        setpriv.chmod(0o755)
        self.environment["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        result = self.run_to_end(self.command(2, "exit", "3"))
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertNotIn("setpriv", result.stderr)

    def test_exit_code_is_that_of_a_rank(self):
        self.assertEqual(self.run_to_end(self.command(2, "exit", "3")).returncode, 3)
        self.assertEqual(self.run_to_end(self.command(2, "exit", "0")).returncode, 0)

    def test_mpirun_of_a_bundle(self):
        """Where build/env leads there; one that is left from an earlier set-up counts no more."""
        clone = self.folder / "clone"
        tools = clone / "build/bundle/env/bin"
        for folder in clone / "launch", tools, clone / "other":
            folder.mkdir(parents=True)
        shutil.copy(RUN, clone / "launch")
        (tools / "mpirun").write_text('#!/bin/sh\necho "bundled $MPI_HOME" > "$FOLDER/seen.mpirun"\n')
        (tools / "mpirun").chmod(0o755)
        (clone / "build/bundle/environment").write_text(f'export PATH="{tools}:$PATH" MPI_HOME="{tools.parent}"\n')
        (clone / "build/env").symlink_to(tools.parent)
        command = [clone / "launch/run", *self.command(2, "say")[1:]]
        self.assertEqual(self.run_to_end(command).returncode, 0)
        self.assertEqual(self.seen("mpirun"), [f"bundled {tools.parent}"])
        (self.folder / "seen.mpirun").unlink()
        (clone / "build/env").unlink()
        (clone / "build/env").symlink_to(clone / "other")
        self.assertEqual(self.run_to_end(command).returncode, 0)
        self.assertEqual([self.seen("mpirun"), len(self.seen(0))], [[], 2])

    def test_one_rank_needs_no_mpi(self):
        result = self.run_to_end(self.command(1, "exit", "4"))
        self.assertEqual(result.returncode, 4)
        self.run_to_end(self.command(1, "say", "two words"))
        self.assertEqual(self.seen("alone"), ["arguments say two words", "columns none"])

    def test_ctrl_c_once_lets_all_ranks_save(self):
        process = self.start("save")
        pids = self.pids()
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does
        _, messages = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, messages)
        self.assertIn("saving and stopping", messages)
        self.assertEqual([self.seen(0), self.seen(1)], [["usr1"], ["usr1"]])
        self.assert_nothing_is_left(pids)

    def test_a_request_before_the_ranks_are_ready_is_kept(self):
        process = self.start("late")
        pids = self.pids()
        process.send_signal(signal.SIGINT)
        time.sleep(1)  # the signal is on its way through mpirun; ranks that it could kill would be dead by then
        (self.folder / "sent").touch()
        _, messages = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75, messages)
        self.assertEqual([self.seen(0), self.seen(1)], [["usr1"], ["usr1"]])
        self.assert_nothing_is_left(pids)

    def test_a_request_at_any_moment_of_the_start_is_kept(self):
        def notes_signals(process):
            caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
            return int(caught.group(1), 16) >> (signal.SIGINT - 1) & 1

        # No SIGINT at first: bash itself loses one now and then that comes while it waits for a command in front.
        for number, delay in ((signal.SIGTERM, 0), (signal.SIGUSR1, 0.02), (signal.SIGTERM, 0.04), (signal.SIGINT, 0.06), (signal.SIGUSR1, 0.08),
                              (signal.SIGINT, 0.1), (signal.SIGTERM, 0.13), (signal.SIGUSR1, 0.17), (signal.SIGINT, 0.25)):
            with self.subTest(signal=number, delay=delay):
                process = self.launch("save")
                self.wait_for(lambda: notes_signals(process), "the script notes signals")
                time.sleep(delay)
                process.send_signal(number)
                _, messages = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 75, messages)

    def asks_itself(self, place, request, nth=1):
        """A signal at the moment before the n-th command at `place`, a pattern for a command and the functions around it."""
        hook = self.folder / "hook"
        hook.write_text(f"""
            passed=0
            at_command() {{
              [ $BASHPID = $$ ] && [[ "$1 in $2" = {place} ]] || return 0
              [ $((passed += 1)) = {nth} ] || return 0
              touch "$FOLDER/asked"
              kill -{request} $$
            }}
            if [ "${{0##*/}}" = run ]; then set -T; trap 'at_command "$BASH_COMMAND" "${{FUNCNAME[*]-}}"; :' DEBUG; fi
            """)
        self.environment["BASH_ENV"] = str(hook)

    def test_a_request_before_the_launcher_has_a_number_is_kept(self):
        """The shell has started mpirun then, which must not go on alone."""
        for request in "USR1", "TERM", "INT":
            with self.subTest(request=request):
                for file in self.folder.glob("*[d-n].*"):
                    file.unlink()
                (self.folder / "asked").unlink(missing_ok=True)
                self.asks_itself("'mpirun_pid=$!'*", request)
                done = self.run_to_end(self.command(2, "save"))
                self.assertEqual((done.returncode, self.seen(0), self.seen(1)), (75, ["usr1"], ["usr1"]), done.stderr)
                self.assertTrue((self.folder / "asked").exists())

    def test_a_request_while_another_signal_is_handed_on_is_kept(self):
        self.asks_itself("*' in deliver_beside '*", "USR1", nth=3)
        process = self.start("save")
        process.send_signal(signal.SIGUSR2)
        _, messages = process.communicate(timeout=30)
        self.assertEqual((process.returncode, self.seen(0), self.seen(1)), (75, ["usr1"], ["usr1"]), messages)
        self.assertTrue((self.folder / "asked").exists())

    def test_launcher_whose_script_has_gone_does_not_begin(self):
        """Killed in the moment of the start: mpirun would not be told of that any more."""
        setsid = self.folder / "setsid"
        setsid.write_text("#!/bin/sh\nkill -KILL $PPID\nsleep 0.5\n" + f'{shutil.which("setsid")} "$@"\necho $? > "$FOLDER/code"\n')
        setsid.chmod(0o755)
        self.environment["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        self.assertEqual(self.launch("say").wait(timeout=30), -signal.SIGKILL)
        self.wait_for((self.folder / "code").exists, "what it started has ended")
        self.assertEqual(((self.folder / "code").read_text(), list(self.folder.glob("seen.*"))), ("143\n", []))

    def test_sigterm_once_lets_all_ranks_save(self):
        process = self.start("save")
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75)

    def test_ctrl_c_twice_stops_at_once(self):
        process = self.start("stubborn")
        pids = self.pids()
        os.killpg(process.pid, signal.SIGINT)
        self.wait_for(lambda: self.seen(0) and self.seen(1), "the first signal arrived")
        self.assertIsNone(process.poll())
        os.killpg(process.pid, signal.SIGINT)
        _, messages = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn("stopping at once", messages)
        self.assert_nothing_is_left(pids)

    def test_a_request_that_comes_twice_at_once_is_one(self):
        """`timeout` signals its child and then the group; a terminal that closes says so by the shell, and by the system a little later."""
        for number in signal.SIGTERM, signal.SIGHUP:
            with self.subTest(signal=number):
                for file in [*self.folder.glob("sav*.*"), *self.folder.glob("pid.*")]:
                    file.unlink()
                process = self.start("slow_save", "1")
                if number == signal.SIGTERM:
                    stop(process)  # however busy the machine is, both are there when it looks
                process.send_signal(number)
                if number == signal.SIGHUP:
                    self.wait_until_saving()
                os.killpg(process.pid, number)
                process.send_signal(signal.SIGCONT)
                process.communicate(timeout=30)
                self.assertEqual(process.returncode, 75)
                self.assertEqual(len(list(self.folder.glob("saved*"))), 2)

    def test_ctrl_c_that_ends_who_reads_the_messages_first_lets_all_ranks_save(self):
        process = self.start("slow_save", "0.5")
        process.stderr.close()  # as `2>&1 | tee log` does
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 75)
        self.assertEqual(len(list(self.folder.glob("saved*"))), 2)

    def test_ctrl_backslash_stops_at_once(self):
        process = self.start("slow_save", "60")
        pids = self.pids()
        os.killpg(process.pid, signal.SIGQUIT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 131)
        self.assertEqual([saved.name for saved in self.folder.glob("saved*")], [])
        self.assert_nothing_is_left(pids)

    def test_ctrl_c_twice_in_a_row_does_not_save(self):
        process = self.start("slow_save", "60")
        pids = self.pids()
        os.killpg(process.pid, signal.SIGINT)
        while "saving and stopping" not in (line := process.stderr.readline()):  # two that come together are one
            self.assertTrue(line, "it ended before it was asked again")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertEqual([saved.name for saved in self.folder.glob("saved*")], [])
        self.assert_nothing_is_left(pids)

    def test_ranks_end_when_the_script_is_killed(self):
        process = self.start("stubborn")
        pids = self.pids()
        process.kill()
        process.communicate(timeout=30)
        self.assert_nothing_is_left(pids)

    def test_wrong_calls_are_refused_with_code_2(self):
        for command, message in [
            ([RUN, "-np", "2", "--build", "/no/such", "--", "train"], "launch/setup"),
            ([RUN, "-np", "0", "--", "train"], "expected a number of ranks"),
            ([RUN, "-np", "2", "train"], "comes after --"),
            ([RUN, "-np", "99999", "--build", str(self.folder), "--", "train"], "the memory of this host holds"),
            ([RUN, "-np", "2", "--"], "nothing to start"),
            ([RUN, "-np"], "needs a number"),
            ([RUN, "-np", "99999999999999999999", "--build", str(self.folder), "--", "train"], "expected a number of ranks"),
            ([RUN, "-np", "2", "--patience", "99999999999999999999", "--", "train"], "expected a number of seconds"),
            ([RUN, "-np", "2", "--hosts"], "--hosts needs a list"),
            ([RUN, "-np", "2", "--build", str(self.folder), "--hosts", "", "--", "say"], "--hosts needs a list"),
            ([RUN, "-np", "2", "--build", str(self.folder), "--hostfile", "", "--", "say"], "--hostfile needs a file"),
            ([RUN, "-np", "2", "--hostfile", "/no/such", "--", "train"], "cannot read"),
            ([RUN, "-np", "2", "--hostfile", str(self.folder), "--", "train"], "cannot read"),
            ([RUN, "-np", "2", "--hostfile", "/no/such", "--hosts", "a", "--", "train"], "exclude each other"),
            ([RUN, "-np", "4", "--hosts", "a:2,b", "--", "train"], "-np 4: --hosts a:2,b has room for 3"),
        ]:
            result = self.run_to_end(command)
            self.assertEqual(result.returncode, 2, command)
            self.assertIn(message, result.stderr)

    def test_program_of_ones_own(self):
        mine = self.folder / "a program with a long name"
        shutil.copy(self.folder / "sidestream", mine)
        own = [RUN, "-np", "2", "--program", mine]
        result = self.run_to_end([*own, "--", "exit", "3"])
        self.assertEqual(result.returncode, 3, result.stderr)
        printed = self.run_to_end([*own, "--dry-run-launch"]).stdout
        self.assertIn(str(mine.resolve()).replace(" ", "\\ "), printed)
        for name in "a=b", "j\u00fcrgen":  # env takes the one for a setting; ps does not print the other in every locale
            other = self.folder / name
            shutil.copy(mine, other)
            result = self.run_to_end([RUN, "-np", "2", "--program", other, "--", "exit", "3"])
            self.assertEqual(result.returncode, 3, result.stderr)
        for wrong in self.folder, self.folder / "absent", "":
            result = self.run_to_end([RUN, "-np", "2", "--program", wrong])
            self.assertEqual(result.returncode, 2)
            self.assertIn("no program that can be started", result.stderr)

    def test_dry_run_launch_prints_the_command(self):
        self.environment["SIDESTREAM_NOTE"] = "x"
        result = self.run_to_end(self.command(16, "train", "--lr", "1",
                                              options=("--hosts", "a:8,b:8", "--mpi-arg", "--display-map",
                                                       "--dry-run-launch")))
        self.assertEqual(result.returncode, 0)
        words = result.stdout.split()
        self.assertEqual(words[:6], ["mpirun", "-np", "16", "--bind-to", "none", "--host"])
        self.assertEqual(words[-4:], [str(self.folder / "sidestream"), "train", "--lr", "1"])
        self.assertIn("--display-map", words)
        self.assertIn("-x SIDESTREAM_NOTE", result.stdout)
        self.assertIn("--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 3", result.stdout)

    def test_cores_are_counted_without_the_setting_of_openmp(self):
        self.environment["OMP_NUM_THREADS"] = "1"
        result = self.run_to_end(self.command(2, "train", options=("--dry-run-launch",)))
        few = len(os.sched_getaffinity(0)) < 2 and "SLURM_JOB_NODELIST" not in os.environ
        self.assertEqual("take turns" in result.stderr, few)

    def test_mpirun_is_told_of_more_ranks_than_it_counts_cores(self):
        files = [pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in os.sched_getaffinity(0)]
        cores = len({file.read_text() for file in files if file.exists()} or files)
        for ranks in cores, cores + 1:
            result = self.run_to_end(self.command(ranks, "train", options=("--dry-run-launch",)))
            self.assertEqual("--oversubscribe" in result.stdout, ranks > max(cores, 1) and "SLURM_JOB_NODELIST" not in os.environ, ranks)

    def test_hosts_of_a_job_of_pbs_or_lsf(self):
        """A line a rank. Of one host alone nothing has to be said, and who names hosts is asked nothing."""
        file = self.folder / "nodes"
        self.environment.pop("SLURM_JOB_NODELIST", None)
        for name in "PBS_NODEFILE", "LSB_DJOB_HOSTFILE":
            self.environment[name] = str(file)
            for lines, options, said in ("a\na\nb\n", (), True), ("a\na\n", (), False), ("a\nb\n", ("--hosts", "c:2"), False):
                file.write_text(lines)
                printed = self.run_to_end(self.command(2, "train", options=(*options, "--dry-run-launch"))).stdout
                self.assertEqual(f"--hostfile {file}" in printed, said, printed)
                self.assertEqual("keepalive" in printed, said or bool(options), printed)
            file.write_text("a\nb\n")
            refused = self.run_to_end(self.command(3, "train"))
            self.assertEqual(refused.returncode, 2)
            self.assertIn("-np 3: this job was given room for 2", refused.stderr)
            del self.environment[name]

    def test_ranks_of_one_host_need_no_questions_about_others(self):
        result = self.run_to_end(self.command(2, "train", options=("--dry-run-launch",)))
        self.assertEqual("keepalive" in result.stdout, "SLURM_JOB_NODELIST" in os.environ)


unittest.main()
