"""What a call of `train` asks for, as the trainer finds it: the flag, then the configuration file."""
import pathlib
import re


def flag_value(command, name):
    """The last value of --name in the command, None if it is not there."""
    value = None
    for word, following in zip(command, command[1:] + [None]):
        if word == f"--{name}":
            value = following
        elif word.startswith(f"--{name}="):
            value = word.split("=", 1)[1]
    return value


def setting(command, name):
    """Of the flag, or of the configuration file, in which a comment begins after a blank, and not inside of quotes; None if neither has it."""
    given = flag_value(command, name)
    config = flag_value(command, "config")
    if given is not None or not config:
        return given
    try:
        text = pathlib.Path(config).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:  # the trainer says why
        return None
    for line in text.splitlines():
        match = re.match(rf'\s*{re.escape(name)}\s*=\s*(?:"([^"]*)"|(.*?))\s*(?:\s#.*)?$', line)
        if match:
            quoted, plain = match.groups()
            given = plain if quoted is None else quoted
    return given


def run_directory(command):
    return pathlib.Path(setting(command, "run-dir") or "runs/default")


def with_resume(command, value):
    """The command with --resume VALUE in the place of what it says itself; the flag goes before the file."""
    words, rest = [], iter(command)
    for word in rest:
        if word == "--resume":
            next(rest, None)
        elif not word.startswith("--resume="):
            words.append(word)
    return [*words, "--resume", value]
