"""Results of other machines and days stay where new ones are written."""
import unittest

import kept


class KeptTest(unittest.TestCase):
    def test_the_first_result_is_the_whole_file(self):
        self.assertEqual(kept.with_new("", "a\nb"), "a\nb\n")

    def test_the_newest_is_on_top(self):
        self.assertEqual(kept.with_new("old\n\nolder\n", "new\n"), "new\n\nold\n\nolder\n")

    def test_a_title_is_there_once(self):
        self.assertEqual(kept.with_new("# T\n\nold\n", "# T\n\nnew\n"), "# T\n\nnew\n\nold\n")
        self.assertEqual(kept.with_new("# T2\n\nold\n", "# T\n\nnew\n"), "# T\n\nnew\n\n# T2\n\nold\n")


if __name__ == "__main__":
    unittest.main()
