"""What files that a run leaves behind, and that people send to others, must not say."""

import getpass
import gzip
import pathlib
import re
import socket
import subprocess

from support import ROOT, check


def words_of_machine(run_dir):
    """Paths of this machine, its name, and the user's."""
    names = {socket.gethostname(), subprocess.run(["hostname"], capture_output=True, text=True).stdout.strip(), getpass.getuser()}
    paths = {str(run_dir), str(ROOT), str(pathlib.Path.home()) + "/", "/home/", "/tmp/"}
    return [re.escape(path) for path in paths] + [rf"\b{re.escape(name)}\b" for name in names - {"", "localhost"}]


def check_nothing_private(run_dir):
    """Traces, clock samples, and what is left of a collective that hangs."""
    run_dir = pathlib.Path(run_dir)
    files = [file for folder in ("trace", "flight") for file in (run_dir / folder).rglob("*") if file.is_file()]
    check(any(file.name == "clock.json" for file in files), f"no clock samples among {files}")
    for file in files:
        text = (gzip.open if file.suffix == ".gz" else open)(file, "rt").read()
        for word in words_of_machine(run_dir):
            found = re.search(word, text) or re.search(word, file.name)
            check(not found, f"{file.name} holds {word}: {text[max(0, found.start() - 60):found.end() + 20] if found else ''}")
