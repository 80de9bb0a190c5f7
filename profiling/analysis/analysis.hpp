// Every question asked once, for the reports.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiling/analysis/collective_table.hpp"
#include "profiling/analysis/device_counters.hpp"
#include "profiling/analysis/hang.hpp"
#include "profiling/analysis/model_use.hpp"
#include "profiling/analysis/overlap_tax.hpp"
#include "profiling/analysis/singular_steps.hpp"
#include "profiling/analysis/step_table.hpp"
#include "profiling/analysis/stragglers.hpp"
#include "profiling/analysis/system_use.hpp"
#include "profiling/analysis/top_operations.hpp"
#include "profiling/analysis/utilisation.hpp"
#include "profiling/analysis/verdict.hpp"

namespace sidestream::analysis {

struct Analysis {
  const trace::TraceSet* set = nullptr;
  std::vector<RankView> ranks;
  CollectiveMatches matches;
  std::vector<RankView> plain_ranks;       // that count the steps of the mean step alone
  std::vector<CollectiveRow> collectives;  // of these steps
  OperationSteps operation_steps;          // of them, those that operations are of
  std::vector<Operation> operations;
  std::optional<statistics::Straggler> straggler;
  std::optional<statistics::UsuallyLast> usually_last;  // stragglers.hpp
  std::optional<std::int64_t> rotating_wait_ns;         // of a step; stragglers.hpp
  std::optional<statistics::Bound> verdict;
  std::optional<Hang> hang;
  std::vector<statistics::Outlier> outliers;
  OverlapTax tax;
  Utilisation utilisation;
  DeviceCounterTable device_counters;
  SystemUse system;
  ModelUse model;
};

// The set has to outlive the result; its clock is filled in, its warnings may grow.
Analysis analyse(trace::TraceSet& set, int threads);

}  // namespace sidestream::analysis
