// What a run made of its peak: model FLOPs utilisation from the steps of a trace, and what the
// profiler cost. Both need what the run wrote about itself into the trace
// (profiling/ranges/trace_metadata.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct ModelUse {
  std::optional<double> tokens_per_s = {};      // of all ranks, from the median step
  std::optional<double> mfu = {};               // (6 N + 6 L C T) tokens/s over the peak
  std::optional<double> mfu_palm = {};          // with 12 L C T
  std::optional<double> palm_over_causal = {};  // FLOPs a token of the one over the other
  // Median step that the profiler saw over that of the others, less 1; 0 when it saw none of the
  // steps in these files. Nothing when the files do not say, and when steps scatter more: then the
  // other one says how much a cost has to be to be seen.
  std::optional<double> profiler_cost = {};
  std::optional<double> profiler_cost_below = {};
  // Waiting for data of a step without the profiler over that step, by rank; empty when the files
  // do not say.
  std::map<int, double> unprofiled_data_wait = {};
  // Steps that both are told from: those without the profiler until the last of these files was
  // written. A run knows more of them at its end. 0: not known.
  std::int64_t steps_without_profiler = 0;
  bool profiler_was_off = false;  // in every step of these files
};

ModelUse model_use(const std::vector<RankView>& ranks);

// Length of the middle step without a tag; nothing when no rank has steps.
std::optional<double> median_step_ns(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
