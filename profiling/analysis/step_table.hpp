// The budget and the idle causes of every step of every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/idle_causes.hpp"
#include "profiling/analysis/step_budget.hpp"
#include "profiling/analysis/step_windows.hpp"
#include "profiling/trace/trace_set.hpp"

namespace sidestream::analysis {

struct StepRow {
  int rank = 0;
  std::optional<std::int64_t> step;
  Interval window;  // on the rank's own clock
  StepBudget budget;
  IdleCauses idle;
  // "first", "eval", "checkpoint", and those below: left out of statistics.
  std::vector<std::string> tags;

  bool has_tag(std::string_view tag) const;
  // Tells nothing about other steps, also where there is no other one: it is nobody's mean.
  bool is_singular() const { return has_tag(kUnfinished) || has_tag(kOutlier); }

  // Tags.
  static constexpr const char* kUnfinished = "unfinished";  // the recording ended in it
  static constexpr const char* kOutlier = "outlier";        // many times as long as the others
};

// One rank of the set, with everything that several analyses need of it.
struct RankView {
  const trace::RankTimeline* timeline = nullptr;
  DeviceActivity activity;
  IntervalSet overlapped_communication;
  IntervalSet exposed_communication;
  std::vector<StepRow> steps;
  IntervalSet singular;  // the windows of such steps

  explicit RankView(const trace::RankTimeline& of_rank);

  // Of an event: whether statistics have room for it.
  bool counts(std::size_t row) const {
    const std::int64_t start_ns = timeline->start_ns(row);
    return singular.empty() || singular.length_within_ns({start_ns, start_ns + 1}) == 0;
  }
  std::int64_t counted_steps() const;
};

// Singular steps are tagged (singular_steps.hpp).
std::vector<RankView> view_ranks(const trace::TraceSet& set, int threads);

// Rows without tags; all but singular ones when every row has one.
std::vector<const StepRow*> plain_steps(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
