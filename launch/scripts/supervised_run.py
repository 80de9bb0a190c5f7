"""What launch/supervise has to know of the run that it starts again and again: a training of `train`, or a program of one's own that saves
with launch/trainer/module_checkpoint.hpp."""
import re
import subprocess

from train_call import run_directory, setting, with_resume

LONGEST_SUMMARY_S = 60  # of a file system that may have died with the run


class CheckpointTimes:
    """What the checkpoints of a run directory, and the file that a start writes when it takes the directory over, say."""

    def __init__(self, run_dir, claim):
        self.run_dir, self.claim = run_dir, claim

    def manifests(self):
        """{step: the manifest of a finished checkpoint}"""
        return {int(file.parent.name[5:]): file for file in (self.run_dir / "checkpoints").glob("step_*/manifest.json")
                if file.parent.name[5:].isdigit()}

    def newest_checkpoint(self):
        return max(self.manifests(), default=-1)

    def last_claim(self):
        """When a start last took the directory over: it could write there, and what it was told was right."""
        try:
            return (self.run_dir / self.claim).stat().st_mtime_ns
        except OSError:
            return 0

    def last_save(self):
        """When the last checkpoint was finished: another one is progress, also one of a step that an earlier, damaged one had."""
        times = [0]
        for file in self.manifests().values():
            try:
                times.append(file.stat().st_mtime_ns)
            except OSError:  # removed just now
                continue
        return max(times)


class Training:
    def __init__(self, command, program):
        self.command, self.program, self.run_dir = command, program, run_directory(command)
        self.times = CheckpointTimes(self.run_dir, "config.cfg")

    def claim(self):
        """The trainer makes the run directory, once it has found no fault with what it was told."""

    def has_begun(self, first_ns):
        """Whether this run has taken the directory over (a fresh one) or saved there (one that goes on from elsewhere), since its first
        start; what was there before belongs to another."""
        begun = self.times.last_claim if setting(self.command, "resume") == "none" else self.times.last_save
        return begun() > first_ns

    def never_claimed(self):
        return False  # the trainer says why

    def words(self, again, first_ns):
        """--resume as it was asked for at the first start; once the run has a checkpoint of its own, a start again goes on from that,
        also one by Slurm."""
        if setting(self.command, "resume") is None or (again and self.has_begun(first_ns)):
            return with_resume(self.command, "auto")
        return self.command

    def place_elsewhere(self, first_ns):
        """From where the next start begins, if that is not the run's own newest checkpoint."""
        asked = setting(self.command, "resume")
        return asked if asked not in (None, "auto", "none") and not self.has_begun(first_ns) else None

    def warning(self):
        if setting(self.command, "checkpoint-every") not in (None, "0"):
            return None
        return ("without --checkpoint-every N only the end of the run is saved: every start again begins from "
                + ("the last checkpoint there is" if self.times.newest_checkpoint() >= 0 else "the first step"))

    def account(self):
        """Where the time of all starts went, which the trainer tells only of a run that comes to its own end."""
        try:
            done = subprocess.run([self.program, "summary", "--run", self.run_dir], capture_output=True, text=True, errors="replace",
                                  timeout=LONGEST_SUMMARY_S)
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search("effective training time .*", done.stdout)
        return found.group() if found else None


class OwnProgram:
    """Goes on from its newest checkpoint by itself, and keeps no account."""

    def __init__(self, command, run_dir):
        self.command, self.run_dir = command, run_dir
        self.times = CheckpointTimes(run_dir, "lock")

    def claim(self):
        """The account begins with the name of the supervisor, by which the folder is known to be this run's; such a program writes none
        into it. Throws OSError."""
        self.run_dir.mkdir(parents=True, exist_ok=True)

    def never_claimed(self):
        """No start has locked the folder: the program saves elsewhere, or nothing."""
        return self.times.last_claim() == 0

    def words(self, _again, _first_ns):
        return self.command

    def place_elsewhere(self, _first_ns):
        return None

    def warning(self):
        return None

    def account(self):
        return None
