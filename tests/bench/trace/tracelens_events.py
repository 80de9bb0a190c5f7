"""TraceLens's analysis of GPU events on every trace of a folder: load, breakdown. Run with the Python that has it."""
import pathlib
import sys

from TraceLens import DataLoader
from TraceLens.TreePerf import GPUEventAnalyser

if __name__ == "__main__":
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        events = [event for event in DataLoader.load_data(str(path))["traceEvents"] if event.get("ph") == "X"]
        for uid, one in enumerate(events):
            one.update(UID=uid, t_end=one["ts"] + one["dur"])
        GPUEventAnalyser(events).get_breakdown_df()
