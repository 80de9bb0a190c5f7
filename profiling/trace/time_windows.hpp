// Which windows of a run the traces are.
//
// Sidestream gives every window a folder. PyTorch's handler puts all windows of all ranks into one:
// there the windows are told apart by time. Who collects traces of several nodes may have a folder
// for each rank or node: those of one time are one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

// Of a device's work and ranges, of operators and calls where there are neither; on the clock of
// the rank's host.
struct Extent {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;

  bool overlaps(const Extent& other) const noexcept {
    return first_ns < other.last_ns && other.first_ns < last_ns;
  }
};
Extent extent_of(const RankTimeline& timeline);

// What PyTorch's handler writes before the time in a file's name, HOST_PID: the same process
// (WORKER.TIME.pt.trace.json, torch.profiler.tensorboard_trace_handler); of a name with a step
// (step_00010.json) the rest of it. Empty for a name of another form.
std::string worker_in_name(const std::string& file_name);

// Gives folders of different ranks that overlap in time one window, "FOLDER + FOLDER + 3 more"; of
// those that do not overlap a warning says so.
//
// Renames the windows of folders that hold a rank more than once: "FOLDER 1", "FOLDER 2", ... A
// rank's traces are numbered by time; a rank with fewer of them than the others gets the windows
// that are nearest in time, and the warning that is handed back says so.
//
// Throws core::DataError for two traces of one rank that overlap in time, whatever folders they are
// in.
std::vector<std::string> separate_windows(std::vector<RankTimeline>& timelines);

}  // namespace sidestream::trace
