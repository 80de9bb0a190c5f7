// SQLite exports of Nsight Systems into the store: one timeline for each device of each process.
//
// Schemas 3.0.0 (2022) and later: which columns a table has is asked of the
// file. Tables read: kernels, copies, CUDA graph launches, runtime calls, NVTX
// ranges, lock calls of the operating system, counters of the GPUs, device
// properties. Source: the schema that the exporter prints and the comments
// inside the exported tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

struct NsysFile {
  // info.rank: MPI's when the file says so, else numbered in order.
  std::vector<RankTimeline> timelines;
  bool has_ranks = false;  // MPI's
  std::uint64_t events = 0;
  std::vector<std::string> warnings;  // what the export lacks, and what cannot be told without it
};

// Throws core::DataError for a file that is damaged or no export of Nsight Systems.
NsysFile read_nsys(const std::filesystem::path& path);

}  // namespace sidestream::trace
