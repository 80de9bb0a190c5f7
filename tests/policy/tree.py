"""The files of the repository, for the checks beside this file: tracked and new ones, nothing that git ignores."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
SOURCE_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}


def _paths():
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
    if listing.returncode == 0:
        return [pathlib.PurePosixPath(line) for line in listing.stdout.splitlines()]
    skipped = ("build/", "runs/", "data/")  # an archive without git
    every = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    return [pathlib.PurePosixPath(path) for path in every if not path.startswith(skipped) and "__pycache__" not in path]


def files(suffixes=None):
    """Paths relative to the root, in order."""
    found = sorted(path for path in set(_paths()) if (ROOT / path).is_file())
    assert len(found) > 50, f"only {len(found)} files under {ROOT}: wrong folder?"
    return [path for path in found if suffixes is None or path.suffix in suffixes]


def sources():
    return files(SOURCE_SUFFIXES)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def includes(path):
    """(line number, included name, True for quotes)"""
    for number, line in enumerate(text(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2), match.group(1) == '"'
