#include "profiling/analysis/model_use.hpp"

#include <algorithm>

namespace sidestream::analysis {
namespace {

std::optional<double> over(double part, double whole) {
  return part > 0 && whole > 0 ? std::optional(part / whole) : std::nullopt;
}

}  // namespace

std::optional<double> median_step_ns(const std::vector<RankView>& ranks) {
  std::vector<std::int64_t> lengths;
  for (const StepRow* row : plain_steps(ranks)) {
    if (row->step) lengths.push_back(row->budget.window_ns);
  }
  if (lengths.empty()) return std::nullopt;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return static_cast<double>(*middle);
}

ModelUse model_use(const std::vector<RankView>& ranks) {
  ModelUse use;
  const std::optional<double> step_ns = median_step_ns(ranks);
  if (!step_ns || *step_ns <= 0) return use;
  for (const RankView& rank : ranks) {
    const trace::RunFigures& run = rank.timeline->info.figures;
    if (run.unprofiled_step_ms > 0) use.profiler_cost = *step_ns / 1e6 / run.unprofiled_step_ms - 1;
    if (run.tokens_per_step <= 0) continue;
    use.tokens_per_s = run.tokens_per_step * 1e9 / *step_ns;
    use.mfu = over(run.flops_per_token * *use.tokens_per_s, run.peak_flops_per_s);
    use.mfu_palm = over(run.flops_per_token_palm * *use.tokens_per_s, run.peak_flops_per_s);
    break;
  }
  return use;
}

}  // namespace sidestream::analysis
