// Who writes a trace, as far as a reader needs to know it: no host name, no user, no path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "comm/communicator.hpp"

namespace sidestream::launch {

struct TraceOrigin {
  int rank = 0;
  int world_size = 1;
  int node = 0;
  std::string backend;  // in the words that readers of PyTorch's traces know
  std::int64_t process_id = 0;

  static TraceOrigin of(const comm::Communicator& communicator);
};

// trace/step_00000012/ under the run directory, with a number behind it where there is one already
// with this rank's file: files of a run are never overwritten.
struct TracePlace {
  std::filesystem::path folder;
  std::filesystem::path file;  // node0_00001.12.pt.trace.json.gz
};
TracePlace trace_place(const std::filesystem::path& run_dir, const TraceOrigin& origin,
                       std::int64_t step);
// trace/asked_0001/ for the first time that somebody asked all ranks, in whatever step each was.
TracePlace trace_place(const std::filesystem::path& run_dir, const TraceOrigin& origin,
                       std::int64_t step, int request);

}  // namespace sidestream::launch
