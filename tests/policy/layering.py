"""Who may include whom."""
import unittest

import tree

# Room -> rooms that it may include from, with all rooms inside them, besides itself and what is inside itself. The
# longest name that fits a path is its room.
ROOMS = {
    "profiling/ranges": [],
    "profiling/statistics": [],
    "core/base": [],
    "core": ["profiling/ranges"],
    "profiling/record": ["core", "profiling/ranges", "profiling/statistics"],
    "comm": ["core", "profiling/ranges", "profiling/record"],
    "parallel": ["core", "profiling/ranges", "profiling/record", "profiling/statistics", "comm"],
    "model": ["core", "profiling/ranges"],
    "profiling/torch": ["core", "profiling/ranges", "profiling/record"],
    "profiling/trace": ["core", "profiling/ranges", "profiling/statistics"],
    "profiling/analysis": ["core", "profiling/ranges", "profiling/statistics", "profiling/trace"],
    "profiling/report": ["core", "profiling/ranges", "profiling/statistics", "profiling/trace", "profiling/analysis"],
    "profiling/advice": ["core", "profiling/ranges", "profiling/trace", "profiling/analysis", "profiling/report"],
    "profiling/verify": ["core", "profiling/ranges", "profiling/statistics", "profiling/analysis", "profiling/report"],
    "profiling/page": ["core", "profiling/ranges", "profiling/statistics", "profiling/trace", "profiling/analysis", "profiling/report", "profiling/verify"],
    "launch": ["core", "comm", "parallel", "model", "profiling"],
    # Flags and reports work without LibTorch: of the rooms with tensors they see plain configurations only.
    "launch/options": ["core", "comm", "parallel", "model"],
    "launch/reporting": ["core"],
    "launch/watch": ["core", "comm", "launch/options", "profiling/ranges", "profiling/record"],
    "examples": ["core", "comm", "parallel", "model", "profiling", "launch"],
    "tests": ["core", "comm", "parallel", "model", "profiling", "launch", "examples"],
}
WITH_LIBTORCH = {"parallel", "model", "profiling/torch", "launch", "examples", "tests"}
WITH_MPI = {"comm", "tests"}
LIBTORCH = ("torch/", "ATen/", "c10/")
MPI = ("mpi.h", "nccl.h")


def room_of(path):
    fitting = [room for room in ROOMS if path == room or str(path).startswith(room + "/")]
    return max(fitting, key=len, default=None)


def fault_of(path, name, quoted):
    """What is wrong with an include, or None."""
    room = room_of(path)
    if room is None:
        return "lies in no room of the table"
    if name in MPI:
        return None if room in WITH_MPI else f"includes {name}: only comm may"
    if name.startswith(LIBTORCH):
        return None if room in WITH_LIBTORCH else f"includes {name}: this room is without LibTorch"
    if not quoted:
        return None
    other = room_of(name)
    if other is None:
        return f'includes "{name}": write the path from the root of the repository'
    allowed = any(other == one or other.startswith(one + "/") for one in [room, *ROOMS[room]])
    return None if allowed else f"includes {name}: {room} may not know {other}"


class LayeringTest(unittest.TestCase):
    def test_includes_follow_the_table(self):
        faults = []
        for path in tree.sources():
            for number, name, quoted in tree.includes(path):
                fault = fault_of(path, name, quoted)
                if fault:
                    faults.append(f"{path}:{number}: {fault}")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_the_check_itself_sees_faults(self):
        for path, name, quoted in [
            ("core/base/a.cpp", "torch/torch.h", False),
            ("parallel/a.cpp", "mpi.h", False),
            ("model/a.cpp", "parallel/config.hpp", True),
            ("model/a.cpp", "comm/work.hpp", True),
            ("comm/a.hpp", "launch/options/flag.hpp", True),
            ("launch/options/a.hpp", "ATen/ATen.h", False),
            ("launch/reporting/a.hpp", "launch/trainer/trainer.hpp", True),
            ("core/base/a.cpp", "error.hpp", True),
            ("core/base/a.cpp", "core/data/loader.hpp", True),
            ("strange/a.cpp", "vector", False),
        ]:
            self.assertIsNotNone(fault_of(path, name, quoted), (path, name))
        self.assertIsNone(fault_of("launch/trainer/a.cpp", "launch/options/flag.hpp", True))
        self.assertIsNone(fault_of("comm/a.cpp", "mpi.h", False))


if __name__ == "__main__":
    unittest.main()
