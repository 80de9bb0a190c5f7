"""launch/supervise on several hosts and under Slurm."""

import io
import os
import pathlib
import signal
import subprocess
import unittest

from supervise_case import SuperviseCase, completed, supervise


class SuperviseClusterTest(SuperviseCase):
    def host_file(self, text):
        file = self.folder / "hosts"
        file.write_text(text)
        return str(file)

    def test_a_host_file_is_handed_to_mpirun(self):
        """Of a host without slots mpirun counts the cores: both ranks have room on a machine that has two."""
        file = self.host_file("# this machine\nlocalhost\n")
        if supervise.cores_of_this_host() < 2:
            file = self.host_file("localhost slots=2\n")
        done = completed(self.on_two_ranks("--hostfile", file), 60, os.environ | {"PLAY": "0"}, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len((self.run_dir / "starts").read_text().splitlines()), 2)

    def test_a_host_file_loses_only_lines_of_bad_hosts(self):
        file = self.host_file("# three\nme@a.lan slots=2 max-slots=4  # the first\nb.lan\nc.lan slots = 2\n")
        job = self.supervisor("-np", "3", "--hostfile", file)
        self.assertEqual(job.hosts, [("a.lan", 2), ("b.lan", supervise.cores_of_this_host()), ("c.lan", 2)])
        job.failures = {"a.lan": 1, "elsewhere": 5}
        self.assertEqual(job.host_words(), ["--hostfile", file])
        job.failures = {"b.lan": 2}
        flag, reduced = job.host_words()
        self.assertEqual(flag, "--hostfile")
        self.assertEqual(pathlib.Path(reduced).read_text(), "me@a.lan slots=2 max-slots=4  # the first\nc.lan slots = 2\n")

    def test_comments_of_a_host_file_are_of_any_encoding(self):
        file = self.host_file("a.lan slots=2\nb.lan slots=2\n")
        line = "c.lan slots=2  # der gr\u00fcne\n".encode("latin-1")
        pathlib.Path(file).write_bytes(pathlib.Path(file).read_bytes() + line)
        job = self.supervisor("-np", "4", "--hostfile", file)
        self.assertEqual(job.hosts, [("a.lan", 2), ("b.lan", 2), ("c.lan", 2)])
        job.failures = {"a.lan": 2}
        self.assertEqual(pathlib.Path(job.host_words()[1]).read_bytes(), b"b.lan slots=2\n" + line)

    def test_lines_of_a_host_file_without_slots_are_counted(self):
        """As PBS writes them: one a rank."""
        job = self.supervisor("-np", "3", "--hostfile", self.host_file("a.lan\na.lan\nb.lan\nb.lan\nc.lan\nd.lan slots=2\nd.lan\n"))
        self.assertEqual(job.hosts, [("a.lan", 2), ("b.lan", 2), ("c.lan", supervise.cores_of_this_host()), ("d.lan", 3)])
        job.failures = {"a.lan": 2}
        flag, reduced = job.host_words()
        self.assertEqual(pathlib.Path(reduced).read_text(), "b.lan\nb.lan\nc.lan\n")

    def test_hosts_of_a_job_of_pbs_or_lsf(self):
        for name in "PBS_NODEFILE", "LSB_DJOB_HOSTFILE":
            file = self.host_file("a.lan\na.lan\nb.lan\nb.lan\n")
            os.environ[name] = file
            self.addCleanup(os.environ.pop, name, None)
            job = self.supervisor("-np", "2")
            self.assertEqual([job.hosts, job.host_words()], [[("a.lan", 2), ("b.lan", 2)], ["--hostfile", file]])
            job.failures = {"a.lan": 2}
            self.assertEqual(pathlib.Path(job.host_words()[1]).read_text(), "b.lan\nb.lan\n")
            self.host_file("a.lan\na.lan\n")
            self.assertEqual(self.supervisor("-np", "2").host_words(), [])
            del os.environ[name]

    def test_a_host_that_is_named_twice_makes_way_for_a_spare(self):
        job = self.supervisor("-np", "2", "--hosts", "a.lan:1,b.lan:1,127.0.0.1:1")
        for message in (b"ssh: connect to host a port 22: No route to host\n", b"sidestream [rank 0 on a.lan]: this rank itself hangs\n"):
            self.assertEqual(job.command(attempt=1)[job.command(attempt=1).index("--hosts") + 1], "a.lan:1,b.lan:1")
            job.blamed = set()
            job.watch_messages(io.BytesIO(message))
            job.note_hosts()
        self.assertEqual(job.command(attempt=1)[job.command(attempt=1).index("--hosts") + 1], "b.lan:1,127.0.0.1:1")
        self.assertEqual(supervise.known_host("localhost", job.hosts), "127.0.0.1")
        self.assertEqual(supervise.known_host("elsewhere", job.hosts), "elsewhere")

    def fake_scontrol(self, script):
        """An environment with this scontrol, in an allocation of three nodes."""
        tool = self.folder / "scontrol"
        tool.write_text(f'#!/bin/sh\necho "$@" >> {self.folder}/asked\n{script}\n')
        tool.chmod(0o755)
        return dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", SLURM_JOB_ID="42")

    def test_hosts_of_an_allocation(self):
        environment = self.fake_scontrol("printf 'n1\\nn2\\nn3\\n'")
        os.environ["PATH"], path = environment["PATH"], os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        hosts = supervise.hosts_of_slurm({"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "8(x2),4"})
        self.assertEqual(hosts, [("n1", 8), ("n2", 8), ("n3", 4)])
        self.assertEqual((self.folder / "asked").read_text(), "show hostnames n[1-3]\n")
        self.assertIsNone(supervise.hosts_of_slurm({}))
        os.environ.update(SLURM_JOB_NODELIST="n[1-3]", SLURM_TASKS_PER_NODE="8(x3)")
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE")])
        job = self.supervisor("-np", "16")
        self.assertNotIn("--hosts", job.command(attempt=1))
        job.failures = {"n2": 2}
        self.assertEqual(job.command(attempt=1)[job.command(attempt=1).index("--hosts") + 1], "n1:8,n3:8")

    def stopped_under_slurm(self, environment, play="sleep", code=75):
        process = self.started(self.command("--requeue"), play, environment)
        self.wait_for(process, "ready")
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, code, errors)
        return errors

    def test_slurm_job_is_put_into_the_queue_again(self):
        errors = self.stopped_under_slurm(self.fake_scontrol("exit 0"))
        self.assertIn("job 42 is in the queue again", errors)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")
        done, starts = self.play("0", "--requeue")  # the job's next start: it goes on, and nothing is asked at its end
        self.assertEqual((done.returncode, len(starts)), (0, 2), done.stderr)
        self.assertIn("--resume auto", starts[1])
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")
        self.assertEqual([line.get("code") for line in self.ledger() if line["event"] == "ended"], [75, 0])

    def test_slurm_job_that_fails_when_it_is_asked_goes_on_too(self):
        self.stopped_under_slurm(self.fake_scontrol("exit 0"), play="sleep 137", code=137)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")

    def test_slurm_job_that_is_asked_between_two_starts_is_requeued(self):
        process = self.started(self.command("--requeue", "--backoff", "20"), "6", self.fake_scontrol("exit 0"))
        with process.stderr as messages:
            for line in messages:
                if "start 2 in" in line:
                    process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(timeout=30), 75)
        self.assertEqual((self.folder / "asked").read_text(), "requeue 42\n")

    def test_slurm_job_that_would_fail_again_is_not_requeued(self):
        self.stopped_under_slurm(self.fake_scontrol("exit 0"), play="sleep 5", code=5)
        self.assertFalse((self.folder / "asked").exists())

    def test_slurm_that_refuses_is_told(self):
        self.assertIn("scontrol requeue 42 ended with 1: not allowed", self.stopped_under_slurm(self.fake_scontrol("echo not allowed >&2; exit 1")))
        (self.run_dir / "ready").unlink()
        told = self.stopped_under_slurm(dict(os.environ))
        self.assertIn("warning: --requeue: this is no Slurm job: when it is asked to stop, nobody starts it again", told)
        self.assertIn("--requeue: this is no Slurm job, nothing to put into the queue", told)
        (self.run_dir / "ready").unlink()
        (self.folder / "scontrol").unlink()
        self.assertIn("scontrol: No such file", self.stopped_under_slurm(dict(os.environ, SLURM_JOB_ID="42")))


if __name__ == "__main__":
    unittest.main()
