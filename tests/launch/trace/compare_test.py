"""`sidestream-trace compare` as a gate: the exit code says by how much the new side is slower, from records of runs alone."""

import json
import unittest

from support import TraceTest, run, write

RECORD = {"schema": 1, "version": "0", "build": "b", "machine": {"processor": "p", "nodes": 1}, "command_line": "train", "world_size": 2,
          "threads_per_rank": 1, "backend": "mpi", "precision": "fp32", "parameters": 1, "exit_code": 0}
PASSED, SLOWER, CANNOT_JUDGE = 0, 10, 12


class CompareTest(TraceTest):
    def write_run(self, name, step_ms, overlap):
        """A run directory as the trainer leaves it; its steps scatter by a thousandth."""
        folder = self.folder / name
        performance = {"steps": 5, "step_ms_p50": step_ms, "tokens_per_s": 1, "exposed_comm_ms_p50": 2, "reader_cost_ms_p50": 1}
        write(folder / "run.json", RECORD | {"performance": performance})
        write(folder / "config.cfg", f"model = gpt2-mini\nseed = 1\noverlap = {overlap}\n")
        lines = [{"step": step, "loss": 5 / step, "batch_cost_s": 1e-3 * step_ms * (1 + 1e-3 * (step % 2)), "reader_cost_s": 0.001,
                  "memory_bytes": 1000, "tokens_per_s": 10} for step in range(1, 12)]
        write(folder / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        return folder

    def setUp(self):
        super().setUp()
        self.fast = [self.write_run("fast-1", 80, "on"), self.write_run("fast-2", 81, "on")]
        self.slow = [self.write_run("slow-1", 100, "off"), self.write_run("slow-2", 101, "off")]

    def gate(self, base, new, *gates):
        done = run("compare", "--base", *base, "--new", *new, *gates, "--quiet")
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_slower_than_allowed(self):
        code, said = self.gate(self.fast, self.slow, "--fail-if-slower", 5)
        self.assertEqual(code, SLOWER, said)
        self.assertRegex(said, r"^sidestream-trace: slower: at most 5 % slower is allowed, the interval is \+\S+ to \+\S+ %\n$")

    def test_slower_within_what_is_allowed_and_faster(self):
        self.assertEqual(self.gate(self.fast, self.slow, "--fail-if-slower", 50), (PASSED, ""))
        self.assertEqual(self.gate(self.slow, self.fast, "--fail-if-slower", 5), (PASSED, ""))
        self.assertEqual(self.gate(self.fast, self.slow), (PASSED, ""))  # without a gate nothing fails

    def test_an_interval_that_reaches_over_the_gate_is_no_verdict(self):
        code, said = self.gate(self.fast, self.slow, "--fail-if-slower", 25)  # it is some 25 % slower
        self.assertEqual((code, said.count("\n")), (CANNOT_JUDGE, 1), said)

    def test_one_block_is_no_verdict(self):
        code, said = self.gate(self.fast[:1], self.slow[:1], "--fail-if-slower", 5)
        self.assertEqual(code, CANNOT_JUDGE, said)
        self.assertIn("one block has no interval", said)


if __name__ == "__main__":
    unittest.main()
