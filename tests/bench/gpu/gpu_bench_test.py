"""What of tests/bench/gpu needs no GPU: its arithmetic, what it reads, and how a row goes on after a failure."""
import dataclasses
import json
import pathlib
import re
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
import batches  # noqa: E402
import compare  # noqa: E402
import llmc  # noqa: E402
import measure  # noqa: E402
import models  # noqa: E402
import optimizer  # noqa: E402
import results  # noqa: E402
import rows  # noqa: E402
import sides  # noqa: E402
import suites  # noqa: E402
import table  # noqa: E402
from live import LivePeer  # noqa: E402
from session import Failed, NoTime, Session  # noqa: E402
from spread import interval, ratios  # noqa: E402

H100 = "NVIDIA H100 80GB HBM3"
# As train_gpt2cu prints it: the first deviations are no numbers, and a device that it does not know has an MFU of -100 %.
LLMC_OUTPUT = """device memory usage: 21315 MiB / 81100 MiB
val loss 11.006021
step    1/3 | loss 11.007906 (+nanz)| norm 16.3235 (+nanz)| lr 2.86e-06 | 2734.72 ms | -100.0% bf16 MFU | 167751 tok/s
step    2/3 | loss 10.829729 (+nanz)| norm 15.0011 (+nanz)| lr 5.71e-06 | 2391.52 ms | 40.3% bf16 MFU | 191824 tok/s
step    3/3 | loss 10.543671 (-1.20z)| norm 11.0997 (+0.31z)| lr 8.57e-06 | 2397.48 ms | 40.3% bf16 MFU | 191900 tok/s
total average iteration time: 2394.500000 ms
"""


class FiguresTest(unittest.TestCase):
    def test_parameters_are_those_of_the_published_models(self):
        published = {"gpt2-124m": 124_439_808, "gpt2-355m": 354_823_168, "gpt2-774m": 774_030_080, "gpt2-1558m": 1_557_611_200}
        self.assertEqual({name: models.SIZES[name].parameters() for name in published}, published)

    def test_mfu(self):
        self.assertAlmostEqual(models.mfu("gpt2-1558m", 1024, 2**20 / 2.8 / 8, H100), 0.465, places=3)
        self.assertIsNone(models.mfu("gpt2-124m", 1024, 1e5, "Some Processor"))

    def test_devices_are_told_apart(self):
        of = {name: models.of_device(models.MEMORY_BYTES_PER_S, name) for name in (H100, "NVIDIA H200", "NVIDIA H100 PCIe", "NVIDIA GH200")}
        self.assertEqual(list(of.values()), [3350e9, 4800e9, None, None])

    def test_interval(self):
        self.assertEqual(interval([1.2, 1.17, 1.19], unit="x"), "1.19x (1.17 to 1.20)")
        self.assertEqual(interval(iter([3]), "{:.0f}", " %"), "3 %")
        self.assertEqual(ratios([6, 8], [2, 4]), [3, 2])

    def test_update_of_a_timeline(self):
        events = [{"name": f"ProfilerStep#{step}", "cat": "user_annotation"} for step in (6, 7)]
        events += [{"name": "void update_kernel<AdamWUpdate>", "cat": "kernel", "dur": us} for us in (100, 300, 100, 300)]
        events += [{"name": "squares_kernel", "cat": "kernel", "dur": 10}, {"name": "update_kernel", "cat": "cpu_op", "dur": 1e6}]

        self.assertAlmostEqual(optimizer.seconds_of_step(events, optimizer.UPDATE), 400e-6)
        self.assertRaises(Failed, optimizer.seconds_of_step, events, "other_kernel")
        self.assertRaises(Failed, optimizer.seconds_of_step, events[2:], optimizer.UPDATE)


class LlmcTest(unittest.TestCase):
    SHAPE = sides.Shape("gpt2-124m", 1024, 448, groups=3, every=1)

    def test_output(self):
        sample = llmc.sample(LLMC_OUTPUT, self.SHAPE)

        self.assertEqual(llmc.step_ms(LLMC_OUTPUT), [2734.72, 2391.52, 2397.48])
        self.assertAlmostEqual(sample["step_ms"], 2394.5)
        self.assertAlmostEqual(sample["tokens_per_s"], 448 * 1024 / 2.3945)
        self.assertEqual(sample["memory_bytes"], 21315 << 20)

    def test_too_few_steps(self):
        cut = LLMC_OUTPUT[:LLMC_OUTPUT.index("step    3/3")]

        self.assertRaises(ValueError, llmc.sample, cut, self.SHAPE)

    def test_program(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(llmc, "write_inputs"):
            session = Session(pathlib.Path(folder), "cuda", minutes=1, llmc=pathlib.Path(folder), folder=pathlib.Path(folder))
            program = pathlib.Path(folder) / "train_gpt2cu"
            for text, expected in ((LLMC_OUTPUT, None), (LLMC_OUTPUT + llmc.ELSEWHERE, batches.OutOfMemory), ("nothing", Failed)):
                program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n", encoding="utf-8")
                program.chmod(program.stat().st_mode | stat.S_IXUSR)
                if expected:
                    self.assertRaises(expected, sides.llm_c, session, self.SHAPE, ())
                else:
                    self.assertAlmostEqual(sides.llm_c(session, self.SHAPE, ("-r", "0"))["step_ms"], 2394.5)


class SuitesTest(unittest.TestCase):
    def test_what_ctest_says(self):
        log = """Internal ctest changing into directory: /build
      Start 1: a_test.One.works/0
 1/4 Test #1: a_test.One.works/0  # GetParam() = false ...   Passed    1.23 sec
 2/4 Test #2: a_test.two ..............................***Failed    0.10 sec
        Start 3: not a result
 3/4 Test #12: b.three ................................***Timeout 200.01 sec
 4/4 Test #13: b.four .................................   Passed    0.01 sec
"""
        self.assertEqual(suites.statuses(log), {"a_test.One.works/0": "Passed", "a_test.two": "Failed", "b.three": "Timeout",
                                                "b.four": "Passed"})


class BatchesTest(unittest.TestCase):
    def fits_up_to(self, largest, asked):
        def measure(batch):
            asked.append(batch)
            if batch > largest:
                raise batches.OutOfMemory
            return 100.0 - abs(batch - 16)
        return measure

    def test_search_ends_where_memory_does(self):
        tried, asked = {}, []

        batches.search(self.fits_up_to(40, asked), tried, first=4, largest=512)

        self.assertEqual(tried, {4: 88.0, 8: 92.0, 16: 100.0, 32: 84.0, 64: None})
        self.assertEqual(batches.fastest(tried), 16)

    def test_search_goes_on(self):
        tried, asked = {4: 1.0, 8: 2.0}, []

        batches.search(self.fits_up_to(1000, asked), tried, first=4, largest=16)

        self.assertEqual(asked, [16])

    def test_shared(self):
        self.assertEqual(batches.shared([{4: 1, 8: 2, 16: None}, {4: 1, 8: 2, 16: 3}]), 8)
        self.assertEqual(batches.shared([{4: 1, 8: 2}, {4: None}, {}]), 8)
        self.assertIsNone(batches.shared([{4: None}]))
        self.assertIsNone(batches.fastest({4: None}))


class SessionTest(unittest.TestCase):
    def run_python(self, code, limit_s=20, **more):
        with tempfile.TemporaryDirectory() as folder:
            session = Session(pathlib.Path(folder), "cuda", minutes=1, folder=pathlib.Path(folder))
            return session.run([sys.executable, "-c", code], limit_s, **more)

    def test_ends(self):
        self.assertEqual(self.run_python("print('done')"), "done\n")
        self.assertRaises(batches.OutOfMemory, self.run_python, "raise SystemExit(8)")
        self.assertRaises(batches.OutOfMemory, self.run_python, "raise SystemExit('[CUDA ERROR] at file x.cu:1: out of memory')")
        self.assertRaisesRegex(Failed, "exit code 3", self.run_python, "raise SystemExit(3)")

    def test_is_ended(self):
        self.run_python("import time; time.sleep(60)", enough=lambda: True)
        self.assertRaisesRegex(Failed, "too long", self.run_python, "import time; time.sleep(60)", limit_s=0.2)
        self.assertRaises(NoTime, self.run_python, "pass", limit_s=1000)


class LivePeerTest(unittest.TestCase):
    def ask(self, code, questions):
        with tempfile.TemporaryDirectory() as folder:
            peer = LivePeer([sys.executable, "-uc", code], pathlib.Path(folder) / "log")
            try:
                return [peer.ask(question, limit_s=20) for question in questions]
            finally:
                peer.close()

    def test_answers_each_question_after_it_is_ready(self):
        self.assertEqual(self.ask("print('noise')\nprint('ready')\nwhile True: print('noise'); print('{%d}' % (2 * int(input())))", [3, 4]),
                         ["{6}", "{8}"])

    def test_ends(self):
        self.assertRaises(batches.OutOfMemory, self.ask, "raise SystemExit(8)", [1])
        self.assertRaises(batches.OutOfMemory, self.ask, "print('ready'); input(); raise SystemExit('CUDA out of memory')", [1])
        self.assertRaisesRegex(RuntimeError, "exit code 3", self.ask, "print('ready'); input(); raise SystemExit(3)", [1])

    def test_error_stays_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = LivePeer([sys.executable, "-uc", "print('ready')"], pathlib.Path(folder) / "log")
            peer.process.wait()
            for _ in range(2):
                self.assertRaisesRegex(RuntimeError, "exit code 0", peer.ask, 1, limit_s=20)

    def test_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = LivePeer([sys.executable, "-c", "import time; time.sleep(60)"], pathlib.Path(folder) / "log")
            self.assertRaisesRegex(RuntimeError, "longer than", peer.ask, 1, limit_s=0.2)


class CompareTest(unittest.TestCase):
    ROW = rows.Row("gpt2-124m", 1024, (rows.ours("ours", "--precision", "bf16", against=("peer", "broken")), rows.pytorch("peer"),
                                       rows.pytorch("broken")), first_batch=8, largest_batch=32)
    SPEEDS = {"ours": {8: 1e5, 16: 3e5, 32: 4e5}, "peer": {8: 1e5, 16: 2e5, 32: None}}

    def compare(self, found, repeats, row=ROW):
        asked = []

        def measure(session, side, shape):
            asked.append((side.name, shape.batch, shape.groups))
            if side.name == "broken":
                raise Failed("exit code 1 from it\nand what it printed")
            speed = self.SPEEDS[side.name][shape.batch]
            if speed is None:
                raise batches.OutOfMemory
            return {"tokens_per_s": speed, "step_ms": 1.0, "memory_bytes": 2**30}
        session = mock.Mock()
        with mock.patch.multiple(compare, measure=measure, start=mock.Mock(), wait_until_started=mock.Mock()):
            compare.compare(session, row, found, repeats, lambda: None)
        session.close_peers.assert_called()
        return asked

    def test_each_at_its_best_and_at_the_same(self):
        found = {}

        self.compare(found, repeats=2)

        taken = [(one["side"], one["batch"]) for one in found["samples"]]
        self.assertEqual(taken, 2 * [("ours", 16), ("ours", 32), ("peer", 16)])
        self.assertEqual(list(found["failed"]), ["broken"])

    def test_what_is_there_is_not_measured_again(self):
        found = {}
        self.compare(found, repeats=1)

        asked = self.compare(found, repeats=2)

        self.assertEqual([one for one in asked if one[0] != "broken"],
                         [("ours", 16, 4), ("ours", 32, 4), ("peer", 16, 4)])

    def test_a_side_without_room(self):
        found = {}

        self.compare(found, 1, dataclasses.replace(self.ROW, first_batch=32))

        self.assertEqual(found["failed"]["peer"], "out of memory at B = 32")
        self.assertEqual([(one["side"], one["batch"]) for one in found["samples"]], [("ours", 32)])

    def test_table(self):
        found = {}
        self.compare(found, repeats=2)

        text = table.text({"device": {"name": H100, "date": "today", "details": []}, "rows": {"124m": found}})

        self.assertIn("| ours | 16 | 300000 (300000 to 300000) |", text)
        self.assertIn("| 32.5 % (32.5 to 32.5) |  | 1.0 |", text)
        self.assertIn("1.50x (1.50 to 1.50) of peer |", text)
        self.assertIn("2.00x (2.00 to 2.00) of peer at its B = 16 |", text)
        self.assertIn("- broken failed: and what it printed\n", text)

    def test_table_has_the_options_of_each_call_once(self):
        found = {}
        self.compare(found, repeats=1)
        before = table.text({"device": {"name": H100, "details": []}, "rows": {"124m": found}})

        for words in (["--rows", "124m", "--llmc", "/some/llm.c", "--build=/some/build"], ["--rows", "124m", "--llmc", "/other"], [],
                      ["--rows", "124m", "--llmc", "/some"]):
            results.Results.note(found, words)
        text = table.text({"device": {"name": H100, "details": []}, "rows": {"124m": found}})

        self.assertNotIn("Options:", before)
        self.assertIn("Options: `--rows 124m --llmc DIR --build=DIR`, then `--rows 124m --llmc DIR`, then none.\n", text)
        self.assertIn("Command: `build/env/bin/python tests/bench/gpu/measure.py`.", text)

    def test_the_text_of_what_is_kept_is_that_of_its_figures(self):
        folder = pathlib.Path(results.__file__).resolve().parents[1] / "results"
        kept = json.loads((folder / "gpu.json").read_text(encoding="utf-8"), object_hook=results.with_numbers)

        self.assertEqual(table.text(kept), (folder / "gpu.md").read_text(encoding="utf-8"))

    def test_the_readme_says_which_rows_have_results(self):
        bench = pathlib.Path(results.__file__).resolve().parents[1]
        kept = json.loads((bench / "results/gpu.json").read_text(encoding="utf-8"))["rows"]
        said = {}
        for line in (bench / "README.md").read_text(encoding="utf-8").splitlines():
            cells = line.split(" | ")
            if line.startswith("| `"):
                said |= dict.fromkeys(re.findall(r"`([\w-]+)`", cells[0]), cells[1])

        self.assertEqual(set(said), {*rows.ROWS, *measure.OTHERS})
        self.assertEqual({name for name, text in said.items() if text != "no"}, said.keys() & kept.keys())

    def test_a_processor_measures_no_flag_of_gpus(self):
        sides_of = {device: {side.name for side in rows.possible(rows.ROWS["toggles"], device, has_llmc=False).sides} for device in ("cpu", "cuda")}

        self.assertIn("bf16 + fused operators", sides_of["cpu"])
        for name in ("tf32", "bf16 + CUDA graph", "bf16 + losses read late"):
            self.assertIn(name, sides_of["cuda"])
            self.assertNotIn(name, sides_of["cpu"])

    def test_every_peer_is_a_side(self):
        for name, row in rows.ROWS.items():
            known = [side.name for side in row.sides]
            self.assertEqual(len(known), len(set(known)), name)
            for side in row.sides:
                self.assertLessEqual(set(side.against), set(known), name)


if __name__ == "__main__":
    unittest.main()
