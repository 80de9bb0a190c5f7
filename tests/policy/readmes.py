"""READMEs: there, short, and naming only what exists."""
import pathlib
import re
import unittest

import tree

LONGEST = 40
CODE_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
SCRIPT = re.compile(r"(?:^|[\s`(])(?:\./)?((?:launch|tests|examples|\.ci)/[\w./-]+)")
FLAG = re.compile(r"(?<=\s)--([a-z][a-z0-9-]+)")
OUR_COMMAND = re.compile(r"(launch/run|launch/setup|launch/quickstart|tests/run|tests/bench/run|tests/soak/run|"
                         r"(?:^|[\s/])sidestream(?:-trace)?)\s")


def readmes():
    return [path for path in tree.files({".md"})]


def blocks_of(path):
    return CODE_BLOCK.findall(tree.text(path))


def known_flags():
    """Flags of every command and script."""
    flags = {"help", "version"}
    for path in tree.files():
        inside = path.as_posix()
        if inside.startswith("launch/options/") and path.suffix == ".cpp":
            flags |= set(re.findall(r'(?:\{|\.name = |switch_named\(\s*)"([a-z][a-z0-9-]*)"', tree.text(path)))
        elif path.suffix == "" and tree.text(path).startswith("#!"):
            flags |= set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)\)", tree.text(path)))
            flags |= set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)\|", tree.text(path)))
            flags |= set(re.findall(r"= --([a-z][a-z0-9-]+) ", tree.text(path)))
        elif path.parts[0] == "tests" and path.suffix == ".py":
            flags |= set(re.findall(r'add_argument\("--([a-z][a-z0-9-]*)"', tree.text(path)))
    return flags


def commands_of(block):
    """Lines of a block, continued ones joined, comments left out."""
    for line in block.replace("\\\n", " ").splitlines():
        yield line.split(" #")[0]


class ReadmesTest(unittest.TestCase):
    def test_every_folder_with_sources_is_described(self):
        faults = []
        for folder in sorted({path.parent for path in tree.sources() if path.parts[0] != "tests"}):
            if folder.name == "detail":
                continue
            if (tree.ROOT / folder / "README.md").exists():
                continue
            above = tree.ROOT / folder.parent / "README.md"
            if not above.exists() or f"`{folder.name}/`" not in above.read_text():
                faults.append(f"{folder}: no README.md, and the one above does not name `{folder.name}/`")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_folder_readmes_are_short(self):
        faults = [f"{path}: more than {LONGEST} lines" for path in readmes()
                  if path.name == "README.md" and len(path.parts) > 1 and tree.text(path).count("\n") > LONGEST]
        self.assertEqual(faults, [])

    def test_files_in_code_blocks_exist(self):
        faults = []
        for path in readmes():
            for name in (name for block in blocks_of(path) for name in SCRIPT.findall(block)):
                if not (tree.ROOT / name.rstrip("./")).exists():
                    faults.append(f"{path}: {name} does not exist")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_flags_in_code_blocks_exist(self):
        flags = known_flags()
        self.assertIn("grad-accumulation", flags)
        self.assertIn("dry-run-launch", flags)
        faults = []
        for path in readmes():
            for line in (line for block in blocks_of(path) for line in commands_of(block)):
                ours = OUR_COMMAND.search(line + " ")
                if ours is None:
                    continue
                for flag in FLAG.findall(line[ours.start():]):
                    if flag not in flags:
                        faults.append(f"{path}: --{flag} does not exist: {line.strip()}")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_sources_in_prose_exist(self):
        """By their path from the root, from tests/, or from the folder of the text."""
        faults, found = [], 0
        for path in readmes():
            for name in re.findall(r"`([a-z0-9_-]+/[a-z0-9_/-]+\.(?:hpp|cpp|cu|py|md|cfg))`", CODE_BLOCK.sub("", tree.text(path))):
                found += 1
                if not any((tree.ROOT / base / name).exists() for base in ("", path.parent, "tests")):
                    faults.append(f"{path}: {name} does not exist")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))
        self.assertGreater(found, 10)

    def test_links_to_files_exist(self):
        faults = []
        for path in readmes():
            for target in re.findall(r"\]\(([^)#:]+)\)", tree.text(path)):
                if not (tree.ROOT / path.parent / target).exists():
                    faults.append(f"{path}: {target} does not exist")
        self.assertEqual(faults, [])

    def test_third_party_names_every_package_that_is_asked_for(self):
        named = set(re.findall(r"`([^`\s]+)`", tree.text(pathlib.Path("THIRD_PARTY.md"))))
        wheels = re.findall(r"^wheel ([\w-]+)", tree.text(pathlib.Path("launch/bundle-packages.txt")), re.M)
        packages = re.findall(r"^[a-z][\w.+-]+$", tree.text(pathlib.Path("launch/apt-packages.txt")), re.M)
        self.assertGreater(len(packages), 20)
        optional = re.findall(r"\\n([a-z][\w-]+)", tree.text(pathlib.Path("launch/setup")).split("apt_missing=()")[0])
        self.assertIn("chromium", optional)
        self.assertEqual([name for name in [*packages, *optional, *wheels] if name not in named], [])


if __name__ == "__main__":
    unittest.main()
