// What a run made of its peak: model FLOPs utilisation from the steps of a trace, and what the
// profiler cost. Both need what the run wrote about itself into the trace.
#pragma once

#include <optional>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct ModelUse {
  std::optional<double> tokens_per_s = {};   // of all ranks, from the median step
  std::optional<double> mfu = {};            // (6 N + 6 L C T) tokens/s over the peak
  std::optional<double> mfu_palm = {};       // with 12 L C T
  std::optional<double> profiler_cost = {};  // median step of the window over the usual one, less 1
};

ModelUse model_use(const std::vector<RankView>& ranks);

// Length of the middle step without a tag; nothing when no rank has steps.
std::optional<double> median_step_ns(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
