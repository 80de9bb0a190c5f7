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
TIMEOUT_S = 300  # LibTorch's headers without a precompiled one
ROOMS = ("comm", "core", "launch", "model", "parallel", "profiling")

# Two folders look for the package, each of them twice; a third does without when there is none.
TWO_USERS = """
cmake_minimum_required(VERSION 3.25)
project(two LANGUAGES CXX)
add_subdirectory(first)
add_subdirectory(second)
find_package(sidestream QUIET)
message(STATUS "outside: ${sidestream_FOUND} ${sidestream_NOT_FOUND_MESSAGE}")
"""
USER = """
find_package(sidestream QUIET)
find_package(sidestream 0.1 QUIET COMPONENTS trainer)
if(sidestream_FOUND)
  add_executable(program_FOLDER ../main.cpp)
  target_link_libraries(program_FOLDER PRIVATE sidestream::trainer)
endif()
"""


AROUND = """
cmake_minimum_required(VERSION 3.28)
project(around LANGUAGES CXX)
add_subdirectory(ROOT sidestream)
add_executable(mine main.cpp)
target_link_libraries(mine PRIVATE sidestream::trainer)
"""


def check_headers(include):
    """What an installed header includes is installed, too."""
    headers = list(include.rglob("*.hpp"))
    check(len(headers) > 100, f"{len(headers)} headers")
    for header in headers:
        for name in re.findall(r'^#include "([^"]+)"', header.read_text(), re.MULTILINE):
            check(name.split("/")[0] not in ROOMS or (include / name).exists(), f"{header.relative_to(include)}: no {name}")


def check_programs(folder):
    """They run, and look for libraries neither in the checkout nor in the current folder."""
    for program in ("sidestream", "sidestream-trace"):
        said = run_command([folder / program, "--version"])
        check(said.strip().lower().startswith("sidestream"), said)
        if (ROOT / "build/env").resolve().is_relative_to((ROOT / "build/bundle").resolve()):  # whose libraries lie in the checkout
            continue
        paths = re.search(r"RUNPATH[^[]*\[(.*)\]", run_command(["readelf", "-d", folder / program]))
        for path in paths.group(1).split(":") if paths else []:
            check(path and not path.startswith(str(ROOT)), f"{program}: looks for libraries in '{path}'")


def configure(source, build, prefix, *more):
    """Exit code and output of CMake for a project that is no part of ours."""
    done = subprocess.run([CMAKE, "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *more],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
    return done.returncode, " ".join(done.stdout.split())


def check_two_users(folder, prefix):
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True)
        (folder / name / "CMakeLists.txt").write_text(USER.replace("FOLDER", name))
    (folder / "CMakeLists.txt").write_text(TWO_USERS)
    (folder / "main.cpp").write_text("int main() {}\n")
    code, said = configure(folder, folder / "build", prefix)
    check(code == 0 and "outside: 1" in said, f"exit code {code}: {said}")
    code, said = configure(folder, folder / "without", prefix, f"-DSIDESTREAM_ENV={folder}")
    check(code == 0 and "outside: 0 SIDESTREAM_ENV" in said and "no Python environment" in said, f"exit code {code}: {said}")
    code, said = configure(folder, folder / "other_mpi", prefix, *of_another_mpi(folder / "mpi"))
    check(code == 0 and "outside: 0 Sidestream was built with Open MPI" in said, f"exit code {code}: {said}")
    code, said = configure(folder, folder / "wrapped", prefix, "-DCMAKE_CXX_COMPILER=mpicxx")
    check(code == 0 and "outside: 1" in said, f"exit code {code}: {said}")


def check_subdirectory(folder):
    """Inside of another project its programs lie in a folder of their own, and how that project compiles is its own affair."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(AROUND.replace("ROOT", str(ROOT)))
    (folder / "main.cpp").write_text("int main() {}\n")
    code, said = configure(folder, folder / "build", folder, f"-DSIDESTREAM_ENV={ROOT / 'build/env'}", "-DSIDESTREAM_CUDA=OFF")
    check(code == 0, said)
    ninja = (folder / "build/build.ninja").read_text()
    linked = set(re.findall(r"^build (\S+): CXX_EXECUTABLE_LINKER", ninja, re.MULTILINE))
    check(linked == {"mine", "sidestream/sidestream", "sidestream/sidestream-trace"}, linked)
    link = re.search(r"^build mine: .*?\n  LINK_FLAGS = (.*?)$", ninja, re.MULTILINE | re.DOTALL)
    check(link is None or not re.search("fuse-ld|no-undefined", link.group(1)), link)
    flags = {of: re.search(rf"^build {of}.*?\n  FLAGS = (.*?)$", ninja, re.MULTILINE | re.DOTALL).group(1) for of in ("CMakeFiles/mine.dir/main.cpp.o", "sidestream/comm/")}
    for flag in ("-Wall", "-fno-math-errno"):
        check([flag in of for of in flags.values()] == [False, True], f"{flag}: {flags}")


def of_another_mpi(folder):
    """What CMake is told where the MPI is not Open MPI, as far as its header says."""
    folder.mkdir()
    headers, libraries = (run_command(["mpicxx", f"--showme:{what}"]).split()[0] for what in ("incdirs", "libdirs"))
    (folder / "mpi.h").write_text(f'#include "{headers}/mpi.h"\n')
    return [f"-DMPI_CXX_COMPILER_INCLUDE_DIRS={folder}", "-DMPI_CXX_LIB_NAMES=mpi", f"-DMPI_mpi_LIBRARY={libraries}/libmpi.so"]


def another_torch(folder):
    """An environment that is the build's but for the version that torch says it is."""
    site = next((ROOT / "build/env/lib").glob("python3*/site-packages"))
    made = folder / "env" / site.relative_to(ROOT / "build/env")
    (made / "torch").mkdir(parents=True)
    for name in ("lib", "include"):
        (made / "torch" / name).symlink_to(site / "torch" / name)
    (made / "torch/version.py").write_text("__version__ = '1.0.0+cpu'\n")
    (made / "nvidia").symlink_to(site / "nvidia")
    return folder / "env"


def check_program(folder, mine, prefix):
    code, said = configure(mine, folder / "build", prefix, f"-DSIDESTREAM_ENV={another_torch(folder)}")
    check(code != 0 and "is 1.0.0+cpu" in said, f"exit code {code}: {said}")
    code, said = configure(mine, folder / "build", prefix, f"-DSIDESTREAM_ENV={ROOT / 'build/env'}")  # in the same build
    check(code == 0, said)
    built = subprocess.run([CMAKE, "--build", folder / "build"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
    check(built.returncode == 0, built.stdout)
    output = run_command(mpirun(2, [folder / "build/train_mlp", "400"]))
    accuracy = float(re.search(r"accuracy ([0-9.]+)", output).group(1))
    check(accuracy > 0.9, f"two spirals: accuracy {accuracy}\n{output}")


def main():
    with tempfile.TemporaryDirectory(prefix="sidestream package ") as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        run_command([CMAKE, "--install", BUILD, "--prefix", prefix])
        check_headers(prefix / "include/sidestream")
        check_programs(prefix / "bin")
        check_two_users(folder / "two", prefix)
        check_subdirectory(folder / "around")
        shutil.copytree(ROOT / "examples/train_mlp", folder / "mine")
        check_program(folder, folder / "mine", prefix)


main()
