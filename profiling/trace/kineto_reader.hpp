// Kineto JSON, as PyTorch's profiler and Sidestream write it (.json, .json.gz), into the store.
//
// One pass, one event in memory at a time. What makes no sense is counted
// in `skipped` and left out; a file that ends too early, is damaged or is
// no trace throws core::DataError with its name and the place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {

struct KinetoFile {
  RankTimeline timeline;
  bool has_rank = false;     // the file itself names its rank (distributedInfo)
  std::uint64_t events = 0;  // objects in traceEvents
  std::vector<std::string> warnings = {};
};

// info.rank is 0 when the file does not say; info.file and info.window are the caller's.
KinetoFile read_kineto(const std::filesystem::path& path);

}  // namespace sidestream::trace
