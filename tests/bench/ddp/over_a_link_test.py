"""Both sides of the comparison over a cable send as many bytes."""
import argparse
import unittest
from unittest import mock

import over_a_link


def words_of_peer(precision, reduce_dtype=None):
    options = argparse.Namespace(model="gpt2-mini", vocab=512, length=256, batch=16, layers=None, heads=None, width=None, rate="1gbit",
                                 precision=precision, reduce_dtype=reduce_dtype)
    with mock.patch.object(over_a_link.cables, "run_on_hosts", return_value='{"step_s": [1.0]}') as call:
        over_a_link.peer(options)
    return call.call_args.args[2]


class PeerTest(unittest.TestCase):
    def test_gradients_of_bf16_cross_as_bf16(self):
        self.assertIn("--compress", words_of_peer("bf16"))

    def test_gradients_of_fp32_cross_as_asked(self):
        self.assertNotIn("--compress", words_of_peer("fp32"))
        self.assertIn("--compress", words_of_peer("fp32", "bf16"))


if __name__ == "__main__":
    unittest.main()
