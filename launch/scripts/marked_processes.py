"""Processes of this machine by a variable of their environment: what a script has started, and what became of it since."""
import os
import pathlib


def environments_with(variable):
    """{pid: environment} of the processes whose environment has NAME=VALUE, but for this one."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended, or belongs to another user
            continue
        if variable in words and int(folder.name) != os.getpid():
            found[int(folder.name)] = dict(word.split("=", 1) for word in words if "=" in word)
    return found


def processes_with(variable):
    return list(environments_with(variable))
