#include "profiling/analysis/model_use.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "profiling/statistics/median.hpp"
#include "profiling/statistics/middle.hpp"

namespace sidestream::analysis {
namespace {

std::optional<double> over(double part, double whole) {
  return part > 0 && whole > 0 ? std::optional(part / whole) : std::nullopt;
}

std::optional<double> median_of(std::vector<std::int64_t> lengths) {
  if (lengths.empty()) return std::nullopt;
  return statistics::median(std::move(lengths));
}

std::int64_t last_step(const RankView& rank) {
  return rank.steps.empty() ? -1 : rank.steps.back().step.value_or(-1);
}

// A rank's last file knows most steps without the profiler.
std::map<int, double> unprofiled_data_wait(const std::vector<RankView>& ranks) {
  std::map<int, const RankView*> last;
  for (const RankView& rank : ranks) {
    if (rank.timeline->info.figures.unprofiled_step_ms <= 0) continue;
    const RankView*& kept = last[rank.timeline->info.rank];
    if (kept == nullptr || last_step(rank) > last_step(*kept)) kept = &rank;
  }
  std::map<int, double> shares;
  for (const auto& [rank, view] : last) {
    const trace::RunFigures& run = view->timeline->info.figures;
    shares[rank] = std::min(1.0, run.unprofiled_data_wait_ms / run.unprofiled_step_ms);
  }
  return shares;
}

// A cost that steps scatter more than is none that could be told.
void compare(const statistics::Middle& profiled, const trace::RunFigures& run, ModelUse& use) {
  const statistics::Middle plain{.median = run.unprofiled_step_ms,
                                 .deviation = run.unprofiled_step_deviation_ms,
                                 .count = static_cast<std::size_t>(run.unprofiled_steps)};
  const double cost = profiled.median / plain.median - 1;
  use.steps_without_profiler = static_cast<std::int64_t>(run.unprofiled_steps);
  const double uncertainty = statistics::difference_uncertainty(profiled, plain) / plain.median;
  if (cost > uncertainty)
    use.profiler_cost = cost;
  else
    use.profiler_cost_below = uncertainty;
}

// Of each step of this rank that the profiler saw. Ranks wait for each other in a step, so that one
// more rank is no observation more; and the steps without the profiler are the rank's own, too.
std::vector<double> profiled_steps_ms(const std::vector<RankView>& ranks, int of_rank) {
  std::map<std::pair<std::string, std::int64_t>, double> of_steps;  // window, step
  for (const RankView& rank : ranks) {
    const trace::RankInfo& info = rank.timeline->info;
    if (info.rank != of_rank || !info.figures.profiled.value_or(true)) continue;
    for (const StepRow& row : rank.steps) {
      if (row.step && row.tags.empty())
        of_steps[{info.window, *row.step}] = static_cast<double>(row.budget.window_ns) * 1e-6;
    }
  }
  std::vector<double> lengths_ms;
  for (const auto& [step, length_ms] : of_steps) lengths_ms.push_back(length_ms);
  return lengths_ms;
}

// Figures of a file are those of its time: the last one knows most steps without the profiler.
void add_profiler_cost(const std::vector<RankView>& ranks, ModelUse& use) {
  const RankView* last = nullptr;
  bool says = false;
  for (const RankView& rank : ranks) {
    const trace::RunFigures& run = rank.timeline->info.figures;
    says = says || run.profiled.has_value();
    if (!run.profiled.value_or(true)) continue;
    const bool is_later = last == nullptr || last_step(rank) > last_step(*last);
    if (run.unprofiled_step_ms > 0 && is_later) last = &rank;
  }
  const auto none_profiled = [](const RankView& rank) {
    return rank.timeline->info.figures.profiled == false;
  };
  use.profiler_was_off = says && std::all_of(ranks.begin(), ranks.end(), none_profiled);
  if (use.profiler_was_off) use.profiler_cost = 0;
  if (last == nullptr) return;
  const std::vector<double> profiled_ms = profiled_steps_ms(ranks, last->timeline->info.rank);
  if (!profiled_ms.empty())
    compare(statistics::middle_of(profiled_ms), last->timeline->info.figures, use);
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
  use.unprofiled_data_wait = unprofiled_data_wait(ranks);
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
