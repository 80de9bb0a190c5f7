#include "profiling/analysis/model_use.hpp"

#include <algorithm>

namespace sidestream::analysis {
namespace {

std::optional<double> over(double part, double whole) {
  return part > 0 && whole > 0 ? std::optional(part / whole) : std::nullopt;
}

std::optional<double> median_of(std::vector<std::int64_t> lengths) {
  if (lengths.empty()) return std::nullopt;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return static_cast<double>(*middle);
}

std::int64_t last_step(const RankView& rank) {
  return rank.steps.empty() ? -1 : rank.steps.back().step.value_or(-1);
}

// Figures of a file are those of its time: the last one knows most steps without the profiler.
void add_profiler_cost(const std::vector<RankView>& ranks, ModelUse& use) {
  const RankView* last = nullptr;
  std::vector<std::int64_t> profiled;
  bool says = false;
  for (const RankView& rank : ranks) {
    const trace::RunFigures& run = rank.timeline->info.figures;
    says = says || run.profiled.has_value();
    if (run.unprofiled_step_ms <= 0 || !run.profiled.value_or(true)) continue;
    if (last == nullptr || last_step(rank) > last_step(*last)) last = &rank;
    for (const StepRow& row : rank.steps) {
      if (row.step && row.tags.empty()) profiled.push_back(row.budget.window_ns);
    }
  }
  const auto none_profiled = [](const RankView& rank) {
    return rank.timeline->info.figures.profiled == false;
  };
  use.profiler_was_off = says && std::all_of(ranks.begin(), ranks.end(), none_profiled);
  if (use.profiler_was_off) use.profiler_cost = 0;
  if (const auto step_ns = median_of(std::move(profiled)); step_ns && last != nullptr)
    use.profiler_cost = *step_ns / 1e6 / last->timeline->info.figures.unprofiled_step_ms - 1;
}

}  // namespace

std::optional<double> median_step_ns(const std::vector<RankView>& ranks) {
  std::vector<std::int64_t> lengths;
  for (const StepRow* row : plain_steps(ranks)) {
    if (row->step) lengths.push_back(row->budget.window_ns);
  }
  return median_of(std::move(lengths));
}

ModelUse model_use(const std::vector<RankView>& ranks) {
  ModelUse use;
  const std::optional<double> step_ns = median_step_ns(ranks);
  if (!step_ns || *step_ns <= 0) return use;
  add_profiler_cost(ranks, use);
  for (const RankView& rank : ranks) {
    const trace::RunFigures& run = rank.timeline->info.figures;
    if (run.tokens_per_step <= 0) continue;
    use.tokens_per_s = run.tokens_per_step * 1e9 / *step_ns;
    use.mfu = over(run.flops_per_token * *use.tokens_per_s, run.peak_flops_per_s);
    use.mfu_palm = over(run.flops_per_token_palm * *use.tokens_per_s, run.peak_flops_per_s);
    use.palm_over_causal = over(run.flops_per_token_palm, run.flops_per_token);
    break;
  }
  return use;
}

}  // namespace sidestream::analysis
