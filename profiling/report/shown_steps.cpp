#include "profiling/report/shown_steps.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace sidestream::report {
namespace {

// One step of all ranks.
struct WholeStep {
  std::optional<std::int64_t> step = {};
  std::size_t rows = 0;
  bool has_tag = false;
  std::int64_t longest_ns = 0;
  std::int64_t least_own_ns = INT64_MAX;
  std::int64_t most_own_ns = INT64_MIN;

  std::int64_t spread_ns() const { return most_own_ns - least_own_ns; }
};

// In their order.
std::vector<WholeStep> whole_steps(const analysis::Analysis& all) {
  std::map<std::optional<std::int64_t>, WholeStep> by_step;
  for (const analysis::RankView& rank : all.ranks) {
    for (const analysis::StepRow& row : rank.steps) {
      WholeStep& whole = by_step[row.step];
      whole.step = row.step;
      whole.rows += 1;
      whole.has_tag = whole.has_tag || !row.tags.empty();
      whole.longest_ns = std::max(whole.longest_ns, row.budget.window_ns);
      whole.least_own_ns = std::min(whole.least_own_ns, row.own_ns());
      whole.most_own_ns = std::max(whole.most_own_ns, row.own_ns());
    }
  }
  std::vector<WholeStep> steps;
  for (const auto& [number, whole] : by_step) steps.push_back(whole);
  return steps;
}

}  // namespace

ShownSteps::ShownSteps(const analysis::Analysis& all, std::size_t most_rows) {
  std::size_t rows = 0, taken = 0;
  for (const analysis::RankView& rank : all.ranks) rows += rank.steps.size();
  if (rows <= most_rows) return;
  const auto take = [&](const std::vector<WholeStep>& steps, std::size_t room) {
    for (const WholeStep& one : steps) {
      if (taken + one.rows > room) return;
      if (kept_.insert(one.step).second) taken += one.rows;
    }
  };
  std::vector<WholeStep> steps = whole_steps(all);
  // Whatever the others are: people look for the beginning.
  kept_.insert(steps.front().step);
  taken += steps.front().rows;
  std::stable_sort(steps.begin(), steps.end(), [](const WholeStep& a, const WholeStep& b) {
    return std::tie(a.has_tag, a.longest_ns) > std::tie(b.has_tag, b.longest_ns);
  });
  take(steps, most_rows - most_rows / 3);
  std::stable_sort(steps.begin(), steps.end(), [](const WholeStep& a, const WholeStep& b) {
    return a.spread_ns() > b.spread_ns();
  });
  take(steps, most_rows);
  left_out_rows_ = static_cast<std::int64_t>(rows - taken);
}

}  // namespace sidestream::report
