"""What the scripts that start ranks have in common: their command line and how they speak.

    launch/NAME -np N [--flag VALUE] [--switch] -- what the ranks should do
"""
import os
import sys


def to_stderr(data):
    """Past Python's buffers, which would keep what nobody takes, and spoil the exit code with it: a reader that has gone, or a log on a
    full disk, ends no run."""
    try:
        while data:
            data = data[os.write(2, data):]
    except OSError:
        pass


class Script:
    def __init__(self, name):
        self.name = name

    def say(self, text):
        to_stderr(f"{self.name}: {text}\n".encode(errors="backslashreplace"))

    def fail(self, text, code=2):
        self.say(text)
        sys.exit(code)

    def help(self, text):
        try:
            print(text, flush=True)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would try once more, and complain
            if not isinstance(error, BrokenPipeError):  # a reader that has seen enough
                self.fail(f"cannot write to standard output: {error.strerror}", 1)
        sys.exit(0)

    def split(self, words, help_text, values, switches):
        """({name: [its values, in order]}, the words after --). `values` and `switches`: {flag: name}; a switch has the value True.
        Not argparse, which takes a value that begins with a dash (--mpi-arg --mca) for a flag."""
        given, words = {}, list(words)
        while words and words[0] != "--":
            flag = words.pop(0)
            if flag in ("-h", "--help"):
                self.help(help_text.strip())
            if flag in switches:
                given[switches[flag]] = [True]
            elif flag not in values:
                self.fail(f"unknown option '{flag}'; what the ranks should do comes after --: launch/{self.name} -np 2 -- train ...")
            elif not words or words[0] == "--" or (words[0] in (*values, *switches) and flag != "--mpi-arg"):
                self.fail(f"{flag} needs a value")
            else:
                given.setdefault(values[flag], []).append(words.pop(0))
        return given, words[1:]

    def number(self, flag, text, kind, low):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value < float("inf"):
            self.fail(f"{flag}: expected a number from {low}, found '{text}'")
        return value

    def ranks(self, given):
        if "ranks" not in given:
            self.fail("-np is missing: how many ranks?")
        return self.number("-np", given["ranks"][-1], int, 1)
