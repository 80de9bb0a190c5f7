"""`cmake --install`: a program of one's own, outside of the checkout, finds the package, links, and trains on two ranks."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/launch/training"))
from support import BUILD, check, mpirun, run_command  # noqa: E402

CMAKE = ROOT / "build/env/bin/cmake"
TIMEOUT_S = 600  # LibTorch's headers without a precompiled one
ROOMS = ("comm", "core", "launch", "model", "parallel", "profiling")


def check_headers(include):
    """What an installed header includes is installed, too."""
    headers = list(include.rglob("*.hpp"))
    check(len(headers) > 100, f"{len(headers)} headers")
    for header in headers:
        for name in re.findall(r'^#include "([^"]+)"', header.read_text(), re.MULTILINE):
            check(name.split("/")[0] not in ROOMS or (include / name).exists(), f"{header.relative_to(include)}: no {name}")


def configure(source, build, prefix, *more):
    """Exit code and output of CMake for a project that is no part of ours."""
    done = subprocess.run([CMAKE, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *more],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
    return done.returncode, " ".join(done.stdout.split())


def main():
    with tempfile.TemporaryDirectory(prefix="sidestream-package-") as name:
        folder = pathlib.Path(name)
        prefix, mine = folder / "prefix", folder / "mine"
        run_command([CMAKE, "--install", BUILD, "--prefix", prefix])
        check_headers(prefix / "include/sidestream")
        for program in ("sidestream", "sidestream-trace"):
            said = run_command([prefix / "bin" / program, "--version"])
            check("idestream" in said, said)

        shutil.copytree(ROOT / "examples/train_mlp", mine)
        code, said = configure(mine, folder / "other", prefix, f"-DSIDESTREAM_ENV={folder}")
        check(code != 0 and "No LibTorch in" in said and "SIDESTREAM_TORCH_DIR" in said, f"exit code {code}: {said}")
        code, said = configure(mine, folder / "build", prefix)
        check(code == 0, said)
        built = subprocess.run([CMAKE, "--build", folder / "build"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
        check(built.returncode == 0, built.stdout)
        output = run_command(mpirun(2, [folder / "build/train_mlp", "400"]))
        accuracy = float(re.search(r"accuracy ([0-9.]+)", output).group(1))
        check(accuracy > 0.9, f"two spirals: accuracy {accuracy}\n{output}")


main()
