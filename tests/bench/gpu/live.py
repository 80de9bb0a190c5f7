"""A peer that stays: what it takes to start and to compile is paid once, and between its turns it only holds memory."""
import queue
import subprocess
import threading

from batches import OutOfMemory

READY = "ready"
MEMORY_CODE = 8


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

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def next_line(self, limit_s):
        """Raises OutOfMemory; RuntimeError with what the program said last."""
        try:
            line = self.lines.get(timeout=limit_s)
        except queue.Empty:
            self.close()
            raise RuntimeError(f"took longer than {limit_s:.0f} s: {' '.join(self.command)}") from None
        if line is not None:
            return line
        self.lines.put(None)  # for who asks again
        code = self.process.wait()
        self.close()
        said = self.log.read_text(errors="replace")
        if code == MEMORY_CODE or "out of memory" in said.lower():
            raise OutOfMemory
        raise RuntimeError(f"exit code {code} from {' '.join(self.command)}\n{said[-2000:]}")

    def wait_until_ready(self, limit_s):
        while not self.is_ready:
            self.is_ready = self.next_line(limit_s) == READY

    def ask(self, text, limit_s):
        self.wait_until_ready(limit_s)
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return self.next_line(limit_s)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.file):
            stream.close()
