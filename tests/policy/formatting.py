"""C++ is laid out as .clang-format says: python tests/policy/formatting.py [ROOT]

Needs the clang-format of Debian 12 (14): other versions break some lines elsewhere.
"""
import os
import subprocess
import unittest

import tree

CLANG_FORMAT = os.environ.get("SIDESTREAM_CLANG_FORMAT", "clang-format")


class FormattingTest(unittest.TestCase):
    def test_sources_are_formatted(self):
        paths = [str(path) for path in tree.sources()]
        self.assertGreater(len(paths), 100)
        done = subprocess.run([CLANG_FORMAT, "--dry-run", *paths], cwd=tree.ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line})
        self.assertEqual(found, [], f"clang-format -i {' '.join(found)}")


if __name__ == "__main__":
    unittest.main()
