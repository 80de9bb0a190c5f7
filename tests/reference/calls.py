"""How tests of whole programs call them: a check that ends the test, and a call whose exit code is expected."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "launch/training"))
from running import completed  # noqa: E402


def check(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def call(*words, expect=0, timeout_s=200):
    """The program's output, both streams. Any other exit code than `expect` fails the test and shows the output."""
    done = completed(words, timeout_s)
    check(done.returncode == expect, f"expected {expect}, found {done.returncode} from {words}\n{done.stdout}")
    return done.stdout
