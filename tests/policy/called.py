"""Every function of a Python test is called: one that nobody calls passes for ever."""
import ast
import unittest

import tree


def names_in(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def never_called(source):
    """Functions at the left margin that nothing else of the file names. A main that takes what begins with test_ out of globals() names
    all of those."""
    module = ast.parse(source)
    by_prefix = "globals" in names_in(module)
    for function in module.body:
        if isinstance(function, ast.FunctionDef) and not (by_prefix and function.name.startswith("test_")):
            if not any(function.name in names_in(other) for other in module.body if other is not function):
                yield function.name


class CalledTest(unittest.TestCase):
    def test_every_function_of_a_test(self):
        paths = [path for path in tree.files({".py"}) if path.parts[0] == "tests" and path.name.endswith("_test.py")]
        self.assertGreater(len(paths), 50)
        faults = [f"{path}: nobody calls {name}" for path in paths for name in never_called(tree.text(path))]
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_the_check_itself_sees_faults(self):
        lost = "def lost():\n    lost()\n\ndef test_lost():\n    pass\n\n"
        self.assertEqual(list(never_called(lost + "def main():\n    pass\n\nmain()\n")), ["lost", "test_lost"])
        self.assertEqual(list(never_called(lost + "def main():\n    globals()\n\nmain()\n")), ["lost"])
        self.assertEqual(list(never_called("def one():\n    pass\n\nfor check in [one]:\n    check()\n")), [])


if __name__ == "__main__":
    unittest.main()
