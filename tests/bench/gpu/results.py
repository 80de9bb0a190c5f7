"""The file of what was measured: read again by the next call on the same device, written after every measurement."""
import json
import pathlib
import sys

import table


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

    def save(self):
        self.json.parent.mkdir(parents=True, exist_ok=True)
        for path, text in ((self.json, json.dumps(self.found, indent=1) + "\n"), (self.text, table.text(self.found))):
            fresh = path.with_suffix(".new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)


def with_numbers(value):
    """Batches are keys, which JSON turns into text."""
    return {int(key) if key.isdecimal() else key: one for key, one in value.items()}
