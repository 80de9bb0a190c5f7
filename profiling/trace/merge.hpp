// All ranks in one Chrome trace (JSON) that Perfetto and
// chrome://tracing open: one process for each rank, on one clock.
//
// Kineto files are passed through event by event, also what this program does not know: only the
// time, the process, the thread and the ids of flow arrows change. What is left out, beside halves
// of arrows, events without a time and the profiler's own marks before the first event, is counted.
// Samples of the system that are rates move to the beginning of their time (counter_spans.hpp).
// Exports of Nsight Systems are written from the store, with what is known of their collectives and
// with their counters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "profiling/trace/trace_set.hpp"

namespace sidestream::trace {

// Of one timeline; on its own clock.
struct MergeCut {
  bool leave_out = false;
  std::int64_t first_ns = INT64_MIN;  // events that touch this stretch are kept
  std::int64_t last_ns = INT64_MAX;

  bool cuts() const noexcept { return first_ns != INT64_MIN || last_ns != INT64_MAX; }
  bool touches(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return end_ns >= first_ns && start_ns <= last_ns;
  }
};

// Events that are not in the output though no cut left them out.
struct MergeLosses {
  std::uint64_t bad_times = 0;   // whose times cannot be
  std::uint64_t unreadable = 0;  // no JSON objects, too large, nested too deeply
  std::uint64_t too_early = 0;   // before the first span of a known kind
};

struct MergeResult {
  std::uint64_t events = 0;
  MergeLosses left_out;
  int processes = 0;
};

// Asked again and again; true: throw core::Error and leave nothing behind.
using StopRequested = std::function<bool()>;

// `cuts` has one entry for each timeline of the set. The output appears when it is complete.
MergeResult merge_traces(const TraceSet& set, const std::vector<MergeCut>& cuts,
                         const std::filesystem::path& output,
                         const StopRequested& stop_requested = {});

}  // namespace sidestream::trace
