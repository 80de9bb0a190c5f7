"""A peer that stays: what it takes to start and to compile is paid once, and between its turns it only holds memory."""
import contextlib
import queue
import subprocess
import threading

from batches import MEMORY_CODE, OutOfMemory

READY = "ready"


class LivePeer:
    """A program that says READY, and then for each line that it is given one line."""

    def __init__(self, command, log):
        self.command, self.log = [str(word) for word in command], log
        self.file = open(log, "wb")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.file, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.is_ready = False
        self.error = None

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next_line(self, limit_s):
        """Raises OutOfMemory; RuntimeError with what the program said last; the same again when it is asked again."""
        if self.error is None:
            try:
                line = self.lines.get(timeout=limit_s)
            except queue.Empty:
                self.close()
                self.error = RuntimeError(f"took longer than {limit_s:.0f} s: {' '.join(self.command)}")
            else:
                if line is not None:
                    return line
                self.error = self.error_of_end()
        raise self.error

    def error_of_end(self):
        code = self.process.wait()
        self.close()
        said = self.log.read_text(errors="replace")
        if code == MEMORY_CODE or "out of memory" in said.lower():
            return OutOfMemory()
        return RuntimeError(f"exit code {code} from {' '.join(self.command)}\n{said[-2000:]}")

    def wait_until_ready(self, limit_s):
        while not self.is_ready:
            self.is_ready = self.next_line(limit_s) == READY

    def ask(self, text, limit_s):
        """The next line that is a JSON object; a library may print others."""
        self.wait_until_ready(limit_s)
        if self.error is not None:
            raise self.error
        try:
            self.process.stdin.write(f"{text}\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended: what comes next says why
        while not (line := self.next_line(limit_s)).startswith("{"):
            pass
        return line

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.file):
            with contextlib.suppress(BrokenPipeError):  # what was asked last is on its way
                stream.close()
