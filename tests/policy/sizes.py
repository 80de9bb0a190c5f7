"""Files and functions stay small. The two limits only go down; what is above them today is listed and has to shrink."""
import re
import statistics
import unittest

import tree

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
LONGEST_MAIN_FILE = 80
LARGEST_MEDIAN = 100

# path -> lines today. May only get smaller; an entry that is no longer needed has to go.
LONG_FILES = {}
# "path: first line of the function" -> lines today.
LONG_FUNCTIONS = {}

NO_FUNCTION = re.compile(r"^(namespace|class|struct|enum|union|extern|template|using|#|//|\}|constexpr [^(]*=|const [^(]*=)")


def lines_of(path):
    return tree.text(path).count("\n")


def functions_of(source):
    """(first line, number of lines) of functions at the left margin, as clang-format lays them out."""
    start = None
    for number, line in enumerate(source.splitlines(), 1):
        text = line.rstrip()
        if start is None and text and not text[0].isspace() and "(" in text and not NO_FUNCTION.match(text):
            start, first, has_body = number, text, False
        if start is None:
            continue
        has_body = has_body or "{" in text
        if text.startswith("}") or (number == start and text.endswith("}")):
            yield first, number - start + 1
            start = None
        elif not has_body and text.endswith(";"):
            start = None


def over(limit, sizes, known):
    """What is above the limit and not known, what grew, and what should leave the list."""
    faults = [f"{name}: {size} lines, at most {limit} are wanted" for name, size in sizes.items()
              if size > limit and name not in known]
    faults += [f"{name}: grew from {known[name]} to {sizes[name]} lines" for name in known
               if sizes.get(name, 0) > known[name]]
    faults += [f"{name}: now {sizes.get(name, 0)} lines; lower the number in the list, or take it out" for name in known
               if sizes.get(name, 0) < known[name]]
    return faults


class SizesTest(unittest.TestCase):
    def check(self, faults):
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_files(self):
        self.check(over(LONGEST_FILE, {str(path): lines_of(path) for path in tree.sources()}, LONG_FILES))

    def test_main_files(self):
        mains = {str(path): lines_of(path) for path in tree.files({".cpp"}) if path.parts[:2] == ("launch", "mains")}
        self.check(over(LONGEST_MAIN_FILE, mains, {}))

    def test_median_file(self):
        sizes = [lines_of(path) for path in tree.sources() if path.parts[0] != "tests"]
        self.assertLessEqual(statistics.median(sizes), LARGEST_MEDIAN)

    def test_functions(self):
        sizes = {}
        for path in tree.sources():
            if path.parts[0] == "tests":
                continue
            for first, size in functions_of(tree.text(path)):
                sizes[f"{path}: {first}"] = size
        self.assertGreater(len(sizes), 100, "the check sees no functions")
        self.check(over(LONGEST_FUNCTION, sizes, LONG_FUNCTIONS))

    def test_the_check_itself_sees_faults(self):
        body = "".join(f"  step({i});\n" for i in range(70))
        found = list(functions_of("int a(int x);\n\nvoid long_one(\n    int x) {\n" + body + "}\n\nint b() { return 1; }\n"))
        self.assertEqual(found, [("void long_one(", 73), ("int b() { return 1; }", 1)])
        self.assertEqual(len(over(60, {"a": 61, "b": 60, "c": 90, "d": 70}, {"c": 80, "d": 75, "e": 70})), 4)


if __name__ == "__main__":
    unittest.main()
