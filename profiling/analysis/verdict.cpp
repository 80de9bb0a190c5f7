#include "profiling/analysis/verdict.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace sidestream::analysis {
namespace {

statistics::StepParts parts_of(const StepRow& step) {
  const StepBudget& budget = step.budget;
  return {.window_ns = static_cast<double>(budget.window_ns),
          .io_ns = static_cast<double>(step.idle.data_ns),
          .comm_ns = static_cast<double>(budget.exposed_comm_ns + step.idle.comm_ns),
          .compute_ns = static_cast<double>(budget.compute_ns + budget.exposed_memcpy_ns)};
}

bool on_device(const std::vector<RankView>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankView& rank) { return rank.activity.where == Where::kDevice; });
}

// Of a host alone whose program may have computed on a device, nothing says what the time went to.
bool any_work_is_known(const std::vector<RankView>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankView& rank) { return rank.activity.where != Where::kNothing; });
}

}  // namespace

bool has_nameless_kernels(const std::vector<RankView>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankView& rank) { return rank.timeline->info.nameless_kernels; });
}

bool has_hidden_kernels(const std::vector<RankView>& ranks) {
  constexpr double kLeftAside = 0.01;  // moves no share by more
  std::int64_t hidden_ns = 0, window_ns = 0;
  visit_plain_steps(ranks, [&](std::size_t file, const StepRow& step) {
    // Without steps the window is that of the work that is known.
    const IntervalSet& unknown = ranks[file].activity.unknown;
    hidden_ns += step.step ? unknown.length_within_ns(step.window) : unknown.length_ns();
    window_ns += step.window.length_ns();
  });
  return static_cast<double>(hidden_ns) > kLeftAside * static_cast<double>(window_ns);
}

std::string verdict_needs(const std::vector<RankView>& ranks) {
  if (has_nameless_kernels(ranks)) return "the names of all kernels: one without may communicate";
  if (has_hidden_kernels(ranks)) return kNeedsGraphNodes;
  const bool has_steps = std::any_of(ranks.begin(), ranks.end(),
                                     [](const RankView& rank) { return rank.counted_steps() > 0; });
  return has_steps
             ? "device work (ProfilerActivity.CUDA): these traces are of the host alone, and do "
               "not "
               "say that it has no device"
             : "steps (a profiler with a schedule, and prof.step() after each), or device work";
}

std::optional<statistics::Bound> find_verdict(const std::vector<RankView>& ranks) {
  if (!any_work_is_known(ranks) || has_nameless_kernels(ranks) || has_hidden_kernels(ranks))
    return std::nullopt;
  statistics::StepParts sum;
  std::map<std::pair<std::string, std::int64_t>, statistics::StepParts> of_step;  // of all ranks
  visit_plain_steps(ranks, [&](std::size_t file, const StepRow& step) {
    sum.add(parts_of(step));
    of_step[{ranks[file].timeline->info.window, step.step.value_or(-1)}].add(parts_of(step));
  });
  std::vector<statistics::StepParts> steps;
  for (const auto& [key, parts] : of_step) steps.push_back(parts);
  return statistics::find_bound(sum, steps,
                                on_device(ranks) ? statistics::kOnGpu : statistics::kOnProcessor);
}

}  // namespace sidestream::analysis
