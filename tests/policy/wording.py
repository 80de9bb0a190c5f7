"""What a reader of the repository should never meet: notes of whoever wrote it, paths of a machine, dead code."""
import re
import unittest

import tree

FORBIDDEN = {
    r"\bissue[s]? #?\d+": "number of an issue: say the thing itself",
    r"\b(TODO|FIXME|XXX|HACK)\b(?!.*https?://)": "open end without a link",
    r"(?<![\w.$])/(work|root|home/\w+|Users)/": "path of one machine",
    r"\b(sub-?agent|chatbot|language model assistant|prompt engineer)": "trace of how it was written",
    r"\bthis (session|sitting|conversation)\b": "trace of how it was written",
    r"\b(as (requested|instructed)|per the brief|the integrator|house_style)\b": "trace of how it was written",
    r"^\s*// ?(if|for|while|return|auto|const|int|std::\w+)\b.*[;{]\s*$": "commented-out code",
}
TEXT_SUFFIXES = tree.SOURCE_SUFFIXES | {".py", ".md", ".txt", ".cmake", ".cfg", ".json", ".sh", ""}
IF_LINE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b")
# Files that may ask the compiler or the build what is there; everyone else calls what these files provide.
MAY_ASK = {
    "core/base/vectorize.hpp", "core/base/square_root.hpp",  # which processors a function is compiled for
    "comm/backoff.hpp", "comm/reduce.cpp",   # instructions of one processor family
    "core/optim/block_squares.cpp",          # the same, for sums of squares
    "model/kernels",                         # the same, for products
    "model/device/chunk.hpp", "model/device/kernel_function.hpp",  # what is compiled for a GPU
    "model/device/narrow.hpp", "model/device/fast_math.hpp",       # the same: its own instructions
    "profiling/ranges/detail",               # with or without NVTX
    "tests/profiling/ranges_absent_test.cpp",
}


def faults_in(path, source):
    for number, line in enumerate(source.splitlines(), 1):
        for pattern, what in FORBIDDEN.items():
            if re.search(pattern, line):
                yield f"{path}:{number}: {what}: {line.strip()[:100]}"


class WordingTest(unittest.TestCase):
    def test_nothing_forbidden(self):
        faults = []
        for path in tree.files(TEXT_SUFFIXES):
            if path.parts[:2] != ("tests", "policy"):
                faults += faults_in(path, tree.text(path))
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_only_few_files_ask_what_is_compiled(self):
        faults = []
        for path in tree.sources():
            if any(str(path) == one or str(path).startswith(one + "/") for one in MAY_ASK):
                continue
            for number, line in enumerate(tree.text(path).splitlines(), 1):
                if IF_LINE.match(line):
                    faults.append(f"{path}:{number}: {line.strip()}")
        self.assertEqual(faults, [], "callers should not ask what is compiled:\n" + "\n".join(faults))

    def test_no_include_guards_by_macro(self):
        missing = [str(path) for path in tree.files({".hpp", ".cuh"}) if "#pragma once" not in tree.text(path)]
        self.assertEqual(missing, [], "headers without #pragma once")

    def test_the_check_itself_sees_faults(self):
        for line in ["// see issue #12", "// TODO: later", "// kept in /work/data/x", "  // return value;", "//auto x = 1;",
                     "// as requested, slow"]:
            self.assertTrue(list(faults_in("a.cpp", line)), line)
        for line in ["// TODO https://example.org/3", "// Returns the value.", "path = $HOME/work/x", "tissue 5", "//   auto example = 1;"]:
            self.assertFalse(list(faults_in("a.cpp", line)), line)


if __name__ == "__main__":
    unittest.main()
