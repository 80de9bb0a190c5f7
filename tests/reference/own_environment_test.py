"""When an environment for programs of others is made, and when one that is there is used. The Python that makes it is a stub."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import own_environment  # noqa: E402

# Says that it is the version in $VERSION; an environment that it makes keeps that version.
PYTHON = """#!/bin/sh
case $2 in
  venv)
    mkdir -p "$3/bin"
    printf '#!/bin/sh\\necho %s\\n' "$VERSION" >"$3/bin/python"
    printf '#!/bin/sh\\necho pip >>"%s"\\n' "$MADE" >"$3/bin/pip"
    chmod +x "$3/bin/python" "$3/bin/pip" ;;
  *) echo "$VERSION" ;;
esac
"""


class OwnEnvironmentTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.made = self.folder / "made"
        (self.folder / "tools").mkdir()
        (self.folder / "tools/python3").write_text(PYTHON)
        (self.folder / "tools/python3").chmod(0o755)
        self.requirements = self.folder / "some.txt"
        self.requirements.write_text("one==1\n")
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.update(PATH=f"{self.folder}/tools:{os.environ['PATH']}", XDG_CACHE_HOME=str(self.folder / "cache"), VERSION="3.11",
                          MADE=str(self.made), HOME=str(self.folder / "home"))

    def python(self):
        return own_environment.python_with(self.requirements)

    def times_made(self):
        return len(self.made.read_text().splitlines())

    def test_one_is_made_once(self):
        self.assertEqual(self.python(), self.python())
        self.assertEqual(self.times_made(), 1)

    def test_another_python_has_its_own(self):
        first = self.python()
        os.environ["VERSION"] = "3.12"

        self.assertNotEqual(self.python(), first)
        self.assertEqual(self.times_made(), 2)

    def test_one_whose_python_is_gone_is_made_anew(self):
        first = self.python()
        first.unlink()

        self.assertEqual(self.python(), first)
        self.assertTrue(first.exists())
        self.assertEqual(self.times_made(), 2)

    def test_one_of_an_earlier_version_is_used_by_the_python_that_made_it(self):
        former = self.folder / "cache/sidestream" / f"readers-{own_environment.hash_of('one==1' + chr(10))}"
        shutil.move(self.python().parents[1], former)
        self.assertEqual(self.python(), former / "bin/python")

        os.environ["VERSION"] = "3.12"
        self.assertNotEqual(self.python(), former / "bin/python")

    def test_an_empty_name_of_the_cache_is_none(self):
        os.environ["XDG_CACHE_HOME"] = ""

        self.assertEqual(self.python().parents[2], self.folder / "home/.cache/sidestream")


if __name__ == "__main__":
    unittest.main()
