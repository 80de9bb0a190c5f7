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

OF_PYTHON = "import platform, sys; print(sys.version_info[:2], platform.machine())"


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def usable(folder, version):
    """Its Python may be gone, or the home shared by other machines."""
    if not (folder / "complete").exists():
        return False
    try:
        return subprocess.run([folder / "bin/python", "-c", OF_PYTHON], capture_output=True, text=True).stdout == version
    except OSError:
        return False


def python_with(*requirements):
    """Path of a Python that has the packages of these files, all pinned. Made when it is not there (needs PyPI)."""
    text = "\n".join(pathlib.Path(one).read_text() for one in requirements)
    version = subprocess.run(["python3", "-c", OF_PYTHON], check=True, stdout=subprocess.PIPE, text=True).stdout
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sidestream"
    of_any_python = cache / f"readers-{hash_of(text)}"  # an earlier version has made it, whose name did not say for which
    if usable(of_any_python, version):
        return of_any_python / "bin/python"
    folder = cache / f"readers-{hash_of(text + version)}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not usable(folder, version):
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(["python3", "-m", "venv", str(folder)], check=True)
            files = [word for one in requirements for word in ("-r", str(one))]
            subprocess.run([str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps", *files],
                           check=True)
            (folder / "complete").touch()
    return folder / "bin/python"


if __name__ == "__main__":
    print(python_with(*sys.argv[1:]))
