"""What other readers make of a folder of Kineto traces, as JSON. Run with the Python of own_environment.py.

    PYTHON tests/reference/read_with_others.py FOLDER

{"hta": {rank: {"steps", "compute_us", "idle_us", "overlap_percent"}}, "tensorboard": {rank: {"steps", "world_size"}}};
without kernels of a GPU HTA says the steps alone.
"""
import json
import logging
import pathlib
import shutil
import sys
import tempfile

from hta.trace_analysis import TraceAnalysis
from torch_tb_profiler.io.cache import Cache
from torch_tb_profiler.profiler.data import RunProfileData


def with_hta(folder):
    analysis = TraceAnalysis(trace_dir=str(folder))
    ranks = {int(rank): {"steps": sorted(int(step) for step in analysis.t.get_iterations(rank))}
             for rank in sorted(analysis.t.traces)}
    if not all((analysis.t.get_trace(rank)["stream"] >= 0).any() for rank in ranks):
        return ranks  # its breakdowns look at kernels of a GPU and fail where there are none
    overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")["comp_comm_overlap_pctg"]
    breakdown = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
    for rank, seen in ranks.items():
        seen.update(compute_us=float(breakdown["compute_time(us)"][rank]), idle_us=float(breakdown["idle_time(us)"][rank]),
                    overlap_percent=float(overlap[rank]))
    return ranks


def with_tensorboard(files):
    ranks = {}
    for path in files:
        profile = RunProfileData.parse(path.name, "1", str(path), Cache())
        profile.process()
        ranks[int(profile.distributed_info["rank"])] = {"steps": list(profile.steps_names),
                                                       "world_size": int(profile.distributed_info["world_size"])}
    return ranks


def main():
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory() as scratch:
        # Only the traces: HTA takes every .json of a folder for one.
        files = []
        for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.json*")):
            if path.name.startswith("rank-") or ".pt.trace.json" in path.name:
                files.append(pathlib.Path(shutil.copy(path, scratch)))
        print(json.dumps({"hta": with_hta(scratch), "tensorboard": with_tensorboard(files)}))


if __name__ == "__main__":
    main()
