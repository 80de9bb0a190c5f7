"""Says which tests failed, with the end of what each printed: failed_tests.py RESULTS.xml...

RESULTS.xml: as `ctest --output-junit` writes it (https://cmake.org/cmake/help/latest/manual/ctest.1.html). One that is
not there is that of a ctest which could not begin; what it said stands above.
"""
import pathlib
import sys
import xml.etree.ElementTree

LINES = 40
COULD_NOT_BEGIN = ("Unable to find executable", "Fixture dependency failed", "Missing Configuration", "Unable to find required file")


def failed_tests(results):
    """Name and output of each test that did not pass, leaving out those that were skipped or are switched off."""
    for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        skipped = case.find("skipped")
        could_not_begin = skipped is not None and skipped.get("message", "").startswith(COULD_NOT_BEGIN)
        if case.get("status") == "fail" or case.find("failure") is not None or could_not_begin:
            yield case.get("name"), case.findtext("system-out") or ""


def main(paths):
    for path in map(pathlib.Path, paths):
        if not path.exists():
            print(f"\n== {path.name} was not written: its tests did not begin")
            continue
        for name, output in failed_tests(path):
            print(f"\n== failed ({path.name.split('.')[0]}): {name}")
            print("\n".join(output.rstrip().splitlines()[-LINES:]))


if __name__ == "__main__":
    main(sys.argv[1:])
