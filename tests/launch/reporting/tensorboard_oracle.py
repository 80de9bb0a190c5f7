"""TensorBoard's own reader has to see what tensorboard_sample wrote: tensorboard_oracle.py PROGRAM"""
import math
import os
import struct
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        assert len(os.listdir(folder)) == 2, os.listdir(folder)
        events = EventAccumulator(folder)
        events.Reload()

        def scalars(tag):
            return [(event.step, event.value) for event in events.Scalars(tag)]

        def as_float(value):
            return struct.unpack("f", struct.pack("f", value))[0]

        # Steps 4 and 5 of the first file were taken again by the second one.
        expected = [(step, as_float(10 / step)) for step in (1, 2, 3)]
        expected += [(step, as_float(20 / step)) for step in (4, 5, 6)]
        assert scalars("train/loss") == expected, scalars("train/loss")
        assert scalars("eval/loss") == [(4, 7.0), (5, 7.0), (6, 7.0)], scalars("eval/loss")
        assert scalars("train/lr")[:3] == [(1, 0.5), (2, 0.5), (3, 0.5)]
        tags = set(events.Tags()["scalars"])
        wanted = {"train/loss", "train/grad_norm", "train/lr", "speed/batch_cost_s", "speed/reader_cost_s",
                  "speed/samples_per_s", "speed/tokens_per_s", "eval/loss"}
        assert wanted <= tags, tags

        # Before the restart everything of the first file is there, the odd tags too.
        first = sorted(os.listdir(folder), key=lambda name: (len(name), name))[0]
        events = EventAccumulator(os.path.join(folder, first))
        events.Reload()
        assert len(events.Scalars("train/loss")) == 5
        assert events.Scalars("odd/long_" + "x" * 300)[0].value == -1.5
        assert math.isnan(events.Scalars("odd/nan")[0].value)


main()
