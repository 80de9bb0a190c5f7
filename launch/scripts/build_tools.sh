# Sourced by launch/setup. Compilers and MPI, as the configure of a build folder ($made) has found them: CMake would never look for others.
# What CXX and CUDACXX said once holds for later calls, too, and so does a program that a shell does not find, as long as it is there.

cached() { sed -n "s/^$1:[A-Z]*=//p" "$made/CMakeCache.txt" 2>/dev/null || :; }
noted() { sed -n "s/^$1\t//p" "$made/tools" 2>/dev/null || :; }

# keep_choice VARIABLE NAME: what it said at the last configure, where this call says nothing. NAME: what CMake's cache calls it.
keep_choice() {
  local before
  [ -z "${!1-}" ] || return 0
  if [ -e "$made/tools" ]; then before=$(noted "$1"); else before=$(cached "$2"); fi
  [ -z "$before" ] || ! command -v "${before%% *}" >/dev/null || export "$1=$before"
}

# same_program CHOICE NAME: whether a choice, if there is one, is what CMake's cache has under this name, if it has any.
same_program() {
  local before
  before=$(cached "$2")
  [ -z "$1" ] || [[ -z $before || $before = *NOTFOUND ]] || [ "$(command -v "${1%% *}")" -ef "$before" ]
}

tool() {  # NAME PROGRAM
  local before path version
  before=$(noted "$1")
  path=$(command -v "$2") || path=${before%%$'\t'*}
  version=$("$path" --version 2>/dev/null | tr '\n\t' '  ') || version=
  [ -n "$version" ] || version=${before#*$'\t'}  # without its libraries it says nothing
  if [ -x "$path" ]; then printf '%s\t%s\t%s\n' "$1" "$path" "$version"; fi
}
without_cuda() { [ "$(cached SIDESTREAM_CUDA)" = OFF ]; }
choices() {
  printf 'CXX\t%s\n' "${CXX-}"
  without_cuda || printf 'CUDACXX\t%s\n' "${CUDACXX-}"
}
found_tools() {
  local compiler=${CXX:-c++} nvcc=${CUDACXX:-/usr/local/cuda/bin/nvcc}  # as SidestreamCudaLanguage.cmake looks for it
  [ -n "${CUDACXX-}" ] || [ -x "$nvcc" ] || nvcc=nvcc
  tool compiler "${compiler%% *}"
  without_cuda || tool nvcc "$nvcc"
  tool mpicc mpicc
  tool mpirun mpirun
}
changed_tools() { found_tools | diff <(grep '^[a-z]' "$made/tools" || :) - | sed -n 's/^[<>] \([a-z]*\).*/\1/p' | sort -u; }  # their names
note_tools() {
  { choices; found_tools; } > "$made/tools.new"
  mv "$made/tools.new" "$made/tools"
}

# of_environment FOLDER: whether a build that somebody has configured by hand uses this Python environment, to which build/env leads.
of_environment() {
  local torch
  torch=$(cached SIDESTREAM_TORCH_DIR)
  [ "$(cached SIDESTREAM_ENV)" -ef "$1" ] && [ -z "$(find build/env -newer "$made/build.ninja")" ] || return 1  # or has led elsewhere then
  [ -z "$torch" ] || [ "$torch" -ef "$(echo "$1"/lib/python3*/site-packages/torch)" ]
}
