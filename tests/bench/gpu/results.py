"""The file of what was measured: read again by the next call on the same device, written after every measurement."""
import json
import pathlib
import shlex
import sys

import table

FOLDERS = ("--llmc", "--output", "--build")  # of one machine: their names tell nobody anything


class Results:
    def __init__(self, folder, device):
        self.json, self.text = pathlib.Path(folder) / "gpu.json", pathlib.Path(folder) / "gpu.md"
        self.found = {"device": device, "rows": {}}
        if self.json.exists():
            self.found = json.loads(self.json.read_text(encoding="utf-8"), object_hook=with_numbers)
        if self.found["device"]["name"] != device["name"]:
            sys.exit(f"{self.json} is of {self.found['device']['name']}, this is {device['name']}: give another --output")
        self.found["device"] = device

    def row(self, name, again):
        """What is known of a row; nothing with `again`."""
        if again:
            self.found["rows"].pop(name, None)
        return self.found["rows"].setdefault(name, {})

    @staticmethod
    def note(found, words):
        """The options of a call that measures this row, once: the next one with the same goes on with it."""
        options = options_of(words)
        if options not in found.setdefault("options", []):
            found["options"].append(options)

    def save(self):
        self.json.parent.mkdir(parents=True, exist_ok=True)
        for path, text in ((self.json, json.dumps(self.found, indent=1) + "\n"), (self.text, table.text(self.found))):
            fresh = path.with_suffix(".new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)


def options_of(words):
    """As they were given, without the names of folders."""
    shown = []
    for word in words:
        option, equals, _ = word.partition("=")
        if shown and shown[-1] in FOLDERS:
            shown.append("DIR")
        else:
            shown.append(f"{option}=DIR" if equals and option in FOLDERS else word)
    return shlex.join(shown)


def with_numbers(value):
    """Batches are keys, which JSON turns into text."""
    return {int(key) if key.isdecimal() else key: one for key, one in value.items()}
