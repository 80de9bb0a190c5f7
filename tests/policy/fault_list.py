"""tests/faults.md names files and tests that are there."""
import re
import unittest

import tree

TESTS = tree.ROOT / "tests"
FILE = re.compile(r"`([\w./]+)`")
NAME = re.compile(r"\w+")


def named(list_of_faults):
    """(file, what the list says of it) of the last column of each row."""
    for line in list_of_faults.splitlines():
        if not line.startswith("| ") or line.endswith("| test |"):
            continue
        cells = line.strip("| ").split(" | ")
        assert len(cells) == 3, f"expected a fault, what is expected, and its tests: {line}"
        parts = FILE.split(cells[2])
        yield from zip(parts[1::2], parts[2::2])


def names_in(text):
    """Of tests, and in parentheses of parts of one."""
    parts = [part for inside in re.findall(r"\(([^)]*)\)", text) for part in re.findall(r'"([^"]+)"', inside)]
    without_parts = re.sub(r"\([^)]*\)", "", text)
    words = re.split(r"[;,.\s]+", without_parts.split(";")[0])
    return parts + [word for word in words if NAME.fullmatch(word) and ("_" in word or word.endswith("Test"))]


class FaultListTest(unittest.TestCase):
    def test_what_it_names_is_there(self):
        rows = list(named((TESTS / "faults.md").read_text()))
        self.assertGreater(len(rows), 100)
        lost = [file for file, _ in rows if not (TESTS / file).exists()]
        self.assertEqual(lost, [])
        for file, text in rows:
            if (TESTS / file).is_file():
                content = (TESTS / file).read_text()
                lost += [f"{file}: {name}" for name in names_in(text) if not re.search(rf"\b{re.escape(name)}\b", content)]
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main()
