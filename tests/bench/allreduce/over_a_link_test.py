"""All sides of the all-reduce over cables have the ranks and the type that were asked for, and the limit that goes with them."""
import unittest
from unittest import mock

import over_a_link

OURS, GLOO = "# progress thread: 0.1 s\nours 67108864 2000000.0\nopenmpi 67108864 4000000.0\n", "gloo 67108864 5000000.0\n"


def calls_and_row(*words):
    """What one round over two hosts started, as (ranks, words), and its row."""
    options = over_a_link.parse(["--rounds", "1", "--rate", "1gbit", *words])
    with mock.patch.object(over_a_link.cables, "run_on_hosts", side_effect=[OURS, GLOO]) as call:
        row = over_a_link.row(options, 2)
    return [(one.args[0], [str(word) for word in one.args[2]]) for one in call.call_args_list], row


class OverALinkTest(unittest.TestCase):
    def test_one_rank_of_fp32_a_host_by_default(self):
        (ours, gloo), row = calls_and_row()
        self.assertEqual((ours[0], gloo[0]), ([1, 1], [1, 1]))
        self.assertNotIn("--bf16", ours[1])
        self.assertEqual(gloo[1][-2:], ["--dtype", "fp32"])
        self.assertEqual(row, "| 2 | 0.537 s | 2.000 s, 27 % | 4.000 s, 13 % | 5.000 s, 11 % |")

    def test_both_programs_have_the_ranks_and_the_type(self):
        (ours, gloo), row = calls_and_row("--ranks-per-host", "2", "--dtype", "bf16")
        self.assertEqual((ours[0], gloo[0]), ([2, 2], [2, 2]))
        self.assertIn("--bf16", ours[1])
        self.assertEqual(gloo[1][-2:], ["--dtype", "bf16"])
        self.assertIn("| 0.537 s |", row)  # ranks of a host share its cable, and the bytes are as many

    def test_the_limit_goes_by_hosts(self):
        self.assertAlmostEqual(over_a_link.limit_s(4, "1gbit"), 1.5 * (64 << 20) / 125e6)

    def test_the_text_says_what_was_measured(self):
        plain = "\n".join(over_a_link.head(over_a_link.parse([])))
        other = "\n".join(over_a_link.head(over_a_link.parse(["--ranks-per-host", "2", "--dtype", "bf16"])))
        self.assertIn("MiB, fp32, over", plain)
        self.assertIn("one rank a host", plain)
        self.assertNotIn("MPI has no bf16", plain)
        self.assertIn("MiB, bf16, over", other)
        self.assertIn("2 ranks a host, which share its cable", other)
        self.assertIn("MPI has no bf16", other)


if __name__ == "__main__":
    unittest.main()
