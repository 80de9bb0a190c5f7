// Figures that the text and the JSON report share: one number in every view.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::report {

// Mean of the untagged steps of all ranks, rounded so that the parts still add up.
struct MeanStep {
  std::int64_t steps = 0;
  std::int64_t tagged = 0;
  std::int64_t window_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t overlapped_comm_ns = 0;
  std::int64_t exposed_comm_ns = 0;
  std::int64_t exposed_memcpy_ns = 0;
  std::int64_t idle_ns = 0;
  analysis::IdleCauses idle;
};

// One line of the budget, in the words that people read.
struct StepPart {
  std::string name;
  std::int64_t time_ns = 0;
};
std::vector<StepPart> parts_of(const MeanStep& mean);

// Of all steps of one rank.
struct RankMean {
  std::int64_t steps = 0;
  std::int64_t window_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t exposed_comm_ns = 0;
  std::int64_t exposed_memcpy_ns = 0;
  std::int64_t idle_ns = 0;
};
RankMean mean_of_rank(const analysis::RankView& rank);

MeanStep mean_step(const std::vector<analysis::RankView>& ranks);

// Median length of the untagged steps; nothing when no rank has steps.
std::optional<double> median_step_ms(const std::vector<analysis::RankView>& ranks);

// Events left out, by reason, over all files.
std::map<std::string, std::uint64_t> skipped_events(const trace::TraceSet& set);

}  // namespace sidestream::report
