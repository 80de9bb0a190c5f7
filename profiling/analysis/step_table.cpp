#include "profiling/analysis/step_table.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "core/data/parallel_for.hpp"
#include "profiling/analysis/singular_steps.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::analysis {
namespace {

using ranges::Phase;
using trace::RankTimeline;

void tag(std::vector<StepRow>& steps, const RankTimeline& timeline, Phase phase) {
  const trace::NameId id = timeline.names.find(ranges::name_of(phase));
  if (id == trace::kNoName) return;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.name_id(row) != id || timeline.kind(row) != trace::Kind::kHostRange) continue;
    for (StepRow& step : steps) {
      const bool inside = timeline.start_ns(row) < step.window.end_ns &&
                          timeline.end_ns(row) > step.window.start_ns;
      const std::string word(ranges::name_of(phase));
      if (inside && (step.tags.empty() || step.tags.back() != word)) step.tags.push_back(word);
    }
  }
}

bool is_of_our_trainer(const trace::RankInfo& info) {
  return info.figures.profiled.has_value() || info.figures.tokens_per_step > 0;
}

// Our trainer counts from 1, and so may whoever puts ranges into a recording of nsys.
// torch.profiler counts from 0: its step 1 is the second one, whatever was recorded first.
std::int64_t first_of_run(const RankTimeline& timeline, const std::vector<StepWindow>& windows) {
  const bool has_zero = std::any_of(windows.begin(), windows.end(),
                                    [](const StepWindow& one) { return one.step == 0; });
  return has_zero || !(is_of_our_trainer(timeline.info) || timeline.info.of_nsys) ? 0 : 1;
}

std::vector<StepRow> step_rows(const RankTimeline& timeline, const DeviceActivity& activity,
                               const BudgetSets& sets) {
  // In this order: what the gaps are made from is gone before the host's sets are held.
  const LaunchGaps gaps = launch_gaps(timeline, sets.busy());
  HostActivity host = host_activity(timeline);
  host.after_sync = after_syncs(host.sync, activity, sets.busy());
  std::vector<StepRow> rows;
  const std::vector<StepWindow> windows = step_windows(timeline, activity);
  const std::int64_t first = first_of_run(timeline, windows);
  for (const StepWindow& one : windows) {
    rows.push_back({.rank = timeline.info.rank,
                    .step = one.step,
                    .window = one.window,
                    .budget = sets.budget_of(one.window),
                    .idle = idle_causes(one.window, sets.busy(), host, gaps),
                    .tags = {}});
    if (one.step == first) rows.back().tags.push_back(StepRow::kFirst);
    if (!one.finished) rows.back().tags.push_back(StepRow::kUnfinished);
  }
  tag(rows, timeline, Phase::kEval);
  tag(rows, timeline, Phase::kCheckpoint);
  return rows;
}

}  // namespace

bool StepRow::has_tag(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

std::int64_t RankView::counted_steps() const {
  return std::count_if(steps.begin(), steps.end(),
                       [&](const StepRow& step) { return counts(step); });
}

IntervalSet RankView::counted_windows() const {
  std::vector<Interval> windows;
  for (const StepRow& step : steps) {
    if (counts(step)) windows.push_back(step.window);
  }
  return IntervalSet(std::move(windows));
}

const StepRow* RankView::step_at(std::int64_t time_ns) const {
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), time_ns,
      [](std::int64_t time, const StepRow& step) { return time < step.window.start_ns; });
  if (after == steps.begin() || std::prev(after)->window.end_ns <= time_ns) return nullptr;
  return &*std::prev(after);
}

RankView::RankView(const RankTimeline& of_rank)
    : timeline(&of_rank), activity(device_activity(of_rank)) {
  const BudgetSets sets(activity);  // as large as the rank's part of the trace: not kept
  overlapped_communication = sets.overlapped_communication();
  exposed_communication = sets.exposed_communication();
  steps = step_rows(of_rank, activity, sets);
}

std::int64_t counted_steps(const std::vector<RankView>& ranks) {
  std::int64_t steps = 0;
  for (const RankView& rank : ranks) steps += rank.counted_steps();
  return steps;
}

std::vector<RankView> view_ranks(const trace::TraceSet& set, int threads) {
  std::vector<std::unique_ptr<RankView>> views(set.timelines.size());
  data::parallel_for({.count = views.size(), .threads = threads, .thread_name = "ss-analysis"},
                     [&](std::uint64_t index, int) {
                       views[index] = std::make_unique<RankView>(set.timelines[index]);
                     });
  std::vector<RankView> ranks;
  for (auto& view : views) ranks.push_back(std::move(*view));
  tag_singular_steps(ranks);
  return ranks;
}

std::vector<RankView> with_plain_steps_alone(const std::vector<RankView>& ranks) {
  const std::vector<const StepRow*> plain = plain_steps(ranks);
  const std::set<const StepRow*> kept(plain.begin(), plain.end());
  std::vector<RankView> copies = ranks;
  for (std::size_t file = 0; file < ranks.size(); ++file) {
    std::vector<Interval> left_out;
    for (const StepRow& step : ranks[file].steps) {
      if (!kept.contains(&step)) left_out.push_back(step.window);
    }
    copies[file].singular = copies[file].singular | IntervalSet(std::move(left_out));
  }
  return copies;
}

void visit_plain_steps(const std::vector<RankView>& ranks,
                       const std::function<void(std::size_t file, const StepRow& step)>& visit) {
  const bool any = std::any_of(ranks.begin(), ranks.end(), [](const RankView& rank) {
    return std::any_of(rank.steps.begin(), rank.steps.end(),
                       [](const StepRow& step) { return step.tags.empty(); });
  });
  for (std::size_t file = 0; file < ranks.size(); ++file) {
    for (const StepRow& step : ranks[file].steps) {
      if (step.tags.empty() || (!any && !step.is_singular())) visit(file, step);
    }
  }
}

std::vector<const StepRow*> plain_steps(const std::vector<RankView>& ranks) {
  std::vector<const StepRow*> plain;
  visit_plain_steps(ranks, [&](std::size_t, const StepRow& step) { plain.push_back(&step); });
  return plain;
}

}  // namespace sidestream::analysis
