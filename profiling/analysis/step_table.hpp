// The budget and the idle causes of every step of every rank.
#pragma once

#include <cstdint>
#include <functional>
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
  // Without waiting for others: what a late rank has more of.
  std::int64_t own_ns() const { return budget.window_ns - budget.exposed_comm_ns - idle.comm_ns; }
  // Tells nothing about other steps, also where there is no other one: it is nobody's mean.
  bool is_singular() const {
    return has_tag(kUnfinished) || has_tag(kIncomplete) || has_tag(kOutlier);
  }

  // Tags, beside the names of phases.
  static constexpr const char* kFirst = "first";  // of a run, where recorded: it sets things up
  static constexpr const char* kUnfinished = "unfinished";  // the recording ended in it
  static constexpr const char* kIncomplete = "incomplete";  // the recorder lost some of its ranges
  static constexpr const char* kOutlier = "outlier";        // many times as long as the others
};

// One rank of the set, with everything that several analyses need of it.
struct RankView {
  const trace::RankTimeline* timeline = nullptr;
  DeviceActivity activity;
  IntervalSet overlapped_communication;
  IntervalSet exposed_communication;
  std::vector<StepRow> steps;
  IntervalSet singular;  // the windows of such steps, and whatever is before a complete one

  explicit RankView(const trace::RankTimeline& of_rank);

  // Of an event: whether statistics have room for it.
  bool counts(std::size_t row) const {
    return singular.empty() || !singular.contains(timeline->start_ns(row));
  }
  bool counts(const StepRow& step) const {
    return !step.is_singular() && !singular.contains(step.window.start_ns);
  }
  std::int64_t counted_steps() const;
  // Their windows.
  IntervalSet counted_windows() const;
  // The step that this moment is in; null between steps.
  const StepRow* step_at(std::int64_t time_ns) const;
};

// Of all of them.
std::int64_t counted_steps(const std::vector<RankView>& ranks);

// Singular steps are tagged (singular_steps.hpp).
std::vector<RankView> view_ranks(const trace::TraceSet& set, int threads);

// Copies for statistics of the same steps as `plain_steps`: these have no room for the others, nor
// for what is in them.
std::vector<RankView> with_plain_steps_alone(const std::vector<RankView>& ranks);

// Rows without tags; all but singular ones when every row has one.
std::vector<const StepRow*> plain_steps(const std::vector<RankView>& ranks);
// The same with the place of each one's file among `ranks`.
void visit_plain_steps(const std::vector<RankView>& ranks,
                       const std::function<void(std::size_t file, const StepRow& step)>& visit);

}  // namespace sidestream::analysis
