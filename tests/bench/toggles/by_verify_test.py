"""Each optimisation of the table in README.md is measured against its off position, or it is said why not."""
import pathlib
import re
import unittest

import by_verify

STEP = {"base_ms": 800.4, "new_ms": 880.4, "speed_up": 0.909, "speed_up_low": 0.9, "speed_up_high": 0.95, "verdict": "slower"}
REPORT = {"step_time": STEP, "convergence": {"verdict": "identical"}, "memory": {"base_bytes": 700 << 20, "new_bytes": 500 << 20}}


def toggles():
    """Names of the flags in the table of README.md, but for the one that stands for all of them."""
    table = (by_verify.ROOT / "README.md").read_text(encoding="utf-8").split("\n## Toggles\n")[1].split("\n## ")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in first_cells for name in re.findall(r"--([a-z0-9-]+)", cell)} - {"baseline"}


class ByVerifyTest(unittest.TestCase):
    def test_every_toggle_has_a_row_or_a_reason(self):
        names = toggles()
        self.assertGreater(len(names), 20)
        flags = {name for sides in by_verify.FLAGS.values() for name in re.findall(r"--([a-z0-9-]+)", sides.base)}
        self.assertEqual(names - flags - set(by_verify.NEEDS_A_GPU) - set(by_verify.NO_RUN_SAVES), set())
        self.assertEqual(flags - names, {"bucket-mb", "first-bucket-mb"}, "numbers that go with --bucketing")
        self.assertEqual(set(by_verify.NEEDS_A_GPU) - names, set())

    def test_a_row_has_both_sides_and_their_memory(self):
        self.assertEqual(by_verify.row("recompute-blocks", REPORT),
                         "| `--recompute none` | `--recompute blocks` | 800 | 880 | 0.909x (0.900 to 0.950) | slower | identical | "
                         "700 MiB | 500 MiB |")

    def test_what_was_not_measured_is_a_dash(self):
        step = dict(STEP, speed_up=None)
        self.assertEqual(by_verify.row("overlap", dict(REPORT, step_time=step, memory=None)),
                         "| `--overlap off` | default | 800 | 880 | - | slower | identical | - | - |")

    def test_levels_of_recompute_are_those_of_the_program(self):
        text = pathlib.Path(by_verify.ROOT / "launch/options/train_settings_toggles.cpp").read_text(encoding="utf-8")
        levels = set(re.findall(r'\{"([a-z]+)", Recompute::k', text)) - {"none"}
        self.assertEqual({name.removeprefix("recompute-") for name in by_verify.FLAGS if name.startswith("recompute-")}, levels)


if __name__ == "__main__":
    unittest.main()
