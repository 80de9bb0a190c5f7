"""Python environments for programs of others that tests and benchmarks compare with: made once, kept in the user's cache.

    python tests/reference/own_environment.py tests/reference/readers.txt     # prints the environment's Python
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys


def python_with(*requirements):
    """Path of a Python that has the packages of these files, all pinned. Made when it is not there (needs PyPI)."""
    text = "\n".join(pathlib.Path(one).read_text() for one in requirements)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "sidestream"
    folder = cache / f"readers-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(["python3", "-m", "venv", str(folder)], check=True)
            files = [word for one in requirements for word in ("-r", str(one))]
            subprocess.run([str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps", *files],
                           check=True)
            (folder / "complete").touch()
    return folder / "bin/python"


if __name__ == "__main__":
    print(python_with(*sys.argv[1:]))
