// The budget and the idle causes of every step of every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  std::vector<std::string> tags;  // "eval", "checkpoint", "first": left out of statistics
};

// One rank of the set, with everything that several analyses need of it.
struct RankView {
  const trace::RankTimeline* timeline = nullptr;
  DeviceActivity activity;
  BudgetSets sets;
  std::vector<StepRow> steps;

  explicit RankView(const trace::RankTimeline& of_rank);
};

std::vector<RankView> view_ranks(const trace::TraceSet& set, int threads);

// Rows without tags; all of them when every row has one.
std::vector<const StepRow*> plain_steps(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
