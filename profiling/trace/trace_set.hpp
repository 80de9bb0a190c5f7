// All ranks of a run: what every analysis starts from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiling/trace/clock_model.hpp"
#include "profiling/trace/clock_samples.hpp"
#include "profiling/trace/rank_timeline.hpp"
#include "profiling/trace/trace_files.hpp"

namespace sidestream::trace {

struct TraceSet {
  std::vector<RankTimeline> timelines;  // by window, then rank
  std::vector<std::string> warnings;    // what is odd about the input, for people
  std::vector<std::string> files;       // without folders
  std::uint64_t events = 0;
  int world_size = 0;                   // as the files say, else the number of ranks
  std::optional<ClockSamples> samples;  // clock.json beside the traces
  ClockModel clock;

  // In rising order.
  std::vector<int> ranks() const;
};

struct LoadOptions {
  int threads = 0;  // 0: as many as there are processors
};

// Reads the files, several at a time. Windows of a rank that lie in one folder are told apart by
// time (time_windows.hpp). Throws core::DataError for a file that cannot be read, and for two files
// of the same rank that cover the same time.
TraceSet load_traces(const std::vector<TraceFile>& files, const LoadOptions& options = {});

}  // namespace sidestream::trace
