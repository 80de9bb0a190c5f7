"""Commands within the time that is left."""
import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from batches import MEMORY_CODE, OutOfMemory
from live import LivePeer

BETWEEN_LOOKS_S = 0.05
SHOWN_CHARACTERS = 2000


class NoTime(Exception):
    pass


class Failed(Exception):
    pass


@dataclasses.dataclass
class Session:
    build: pathlib.Path
    device: str
    minutes: float
    llmc: pathlib.Path | None = None
    peers: dict = dataclasses.field(default_factory=dict)
    folder: pathlib.Path = dataclasses.field(default_factory=lambda: pathlib.Path(tempfile.mkdtemp(prefix="sidestream-gpu-")))

    def __post_init__(self):
        self.end = time.monotonic() + 60 * self.minutes

    def peer(self, command):
        """The one that this command has started; it starts where there is none."""
        key = tuple(str(word) for word in command)
        if key not in self.peers:
            self.peers[key] = LivePeer(key, self.folder / f"peer-{len(self.peers)}.log")
        return self.peers[key]

    def forget_peer(self, command):
        self.peers.pop(tuple(str(word) for word in command), None)

    def close_peers(self):
        for peer in self.peers.values():
            peer.close()
        self.peers.clear()

    def left_s(self):
        return self.end - time.monotonic()

    def run(self, command, limit_s, enough=lambda: False, least_s=None):
        """What a command printed. least_s: with less left it is not begun (a quarter of its limit). It is ended as soon as `enough`
        says so, which counts as success. Raises NoTime, OutOfMemory or Failed."""
        self.require_time(limit_s / 4 if least_s is None else least_s)
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        words = [str(word) for word in command]
        with tempfile.TemporaryFile(dir=self.folder) as file:
            process = subprocess.Popen(words, env=env, stdout=file, stderr=subprocess.STDOUT, cwd=self.folder, start_new_session=True)
            ended_by = self.wait(process, limit_s, enough)
            file.seek(0)
            output = file.read().decode(errors="replace")
        check(words, process.returncode, output, ended_by)
        return output

    def require_time(self, seconds):
        if self.left_s() < seconds:
            raise NoTime

    def wait(self, process, limit_s, enough):
        """What ended it: itself, that it was enough, its limit, or the end of the session."""
        limit = time.monotonic() + limit_s
        while process.poll() is None:
            now = time.monotonic()
            reason = "enough" if enough() else "session" if now > self.end else "limit" if now > limit else None
            if reason:
                os.killpg(process.pid, signal.SIGKILL)  # what it started too: ranks that stay would slow down all that follows
                process.wait()
                return reason
            time.sleep(BETWEEN_LOOKS_S)
        return "itself"


def check(words, code, output, ended_by):
    if ended_by == "enough" or (ended_by == "itself" and code == 0):
        return
    if ended_by == "session":
        raise NoTime
    if ended_by == "limit":
        raise Failed(f"took too long: {' '.join(words)}\n{output[-SHOWN_CHARACTERS:]}")
    if code == MEMORY_CODE or "out of memory" in output.lower():
        raise OutOfMemory
    raise Failed(f"exit code {code} from {' '.join(words)}\n{output[-SHOWN_CHARACTERS:]}")
