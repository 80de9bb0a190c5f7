"""launch/setup where there is no terminal, with a stub for cmake and an environment that is complete."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Ninja as it writes into a pipe: forty steps in two seconds, one with a warning.
CMAKE = """#!/usr/bin/env bash
if [[ $* = *--preset* && $1 != --build ]]; then
  echo "configure $* CXX=$CXX CUDACXX=$CUDACXX" >> calls
  made=build/${!#} cuda=ON
  [ "${!#}" != cpu ] || cuda=OFF
  mkdir -p "$made"
  ${STUB_CONFIGURE:-true} $PPID || exit 1
  [ -e "$made/CMakeCache.txt" ] && [ "$1" != --fresh ] ||
    printf '%s\n' "SIDESTREAM_ENV:PATH=$PWD/build/env" "SIDESTREAM_CUDA:BOOL=$cuda" \
      "CMAKE_CXX_COMPILER:STRING=$(command -v "${CXX:-c++}")" \
      "CMAKE_CUDA_COMPILER:FILEPATH=${CUDACXX:-NOTFOUND}" > "$made/CMakeCache.txt"
  touch "$made/build.ninja"
  exit 0
fi
echo "cmake $*" >> calls
${STUB_BUILD:-true} $PPID || exit 1
for i in $(seq 40); do
  echo "[$i/40] Building CXX object part$i.o"
  [ $i != 20 ] || echo "part20.cpp:1: warning: odd"
  sleep "${STUB_PAUSE:-0}"
done
exit "${STUB_CODE:-0}"
"""

# Python of the system, and of the environments that it makes.
PYTHON = """#!/usr/bin/env bash
[ "$0" != "${STUB_GONE:-}" ] || exit 127
case "$*" in
  -c*print*) echo "${STUB_VERSION:-3.11}" ;;
  -V) echo "Python ${STUB_VERSION:-3.11}.2" ;;
  "-m venv --clear "*) rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; cp "$STUB_CMAKE" "$4/bin/cmake"; echo venv >> calls ;;
  "-m pip install"*) echo pip >> calls; ${STUB_PIP:-true} $PPID ;;
esac
"""


class SetupCase(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        launch = self.folder / "clone/launch"
        launch.mkdir(parents=True)
        shutil.copy(ROOT / "launch/setup", launch / "setup")
        shutil.copytree(ROOT / "launch/scripts", launch / "scripts")
        (launch / "apt-packages.txt").write_text("bash\n")
        (launch / "requirements.txt").write_text("torch==1\n")
        (self.folder / "clone/CMakePresets.json").write_text("{}")
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.cmake = self.program(self.folder / "cmake", CMAKE)
        self.program(self.tools / "python3", PYTHON)
        self.environment = self.environment_of(f"torch==1\n3.11 {os.uname().machine}\n")
        self.make_environment(self.environment)

    def tearDown(self):
        self.temporary.cleanup()

    def program(self, path, text):
        path.write_text(text)
        path.chmod(0o755)
        return path

    def environment_of(self, text):
        return self.folder / "cache/sidestream" / ("env-" + hashlib.sha256(text.encode()).hexdigest()[:12])

    def make_environment(self, folder):
        (folder / "bin").mkdir(parents=True)
        (folder / "complete").touch()
        self.program(folder / "bin/cmake", CMAKE)
        self.program(folder / "bin/python", PYTHON)

    def calls(self):
        calls = self.folder / "clone/calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def packages(self, apt, **more):
        """One is missing; `apt` is what apt-get and dpkg do."""
        (self.folder / "clone/launch/apt-packages.txt").write_text("no-such-package\n")
        for name, text in {"apt-get": apt, "dpkg": apt, "id": "echo 1000", **more}.items():
            self.program(self.tools / name, f'#!/bin/sh\necho "{name} $*" >> calls\n{text}\n')

    def variables(self, **more):
        own = {"XDG_CACHE_HOME": str(self.folder / "cache"), "PATH": f"{self.tools}:{os.environ['PATH']}", "STUB_CMAKE": str(self.cmake)}
        return {name: value for name, value in os.environ.items() if name not in ("PYTHON", "CXX", "CUDACXX")} | own | more

    def run_setup(self, *flags, **more):
        return subprocess.run([self.folder / "clone/launch/setup", *flags], env=self.variables(**more), text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
