#include "profiling/analysis/step_gaps.hpp"

#include <vector>

#include "profiling/analysis/interval_set.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::analysis {
namespace {

struct Named {
  IntervalSet all;   // phases of any kind
  IntervalSet rare;  // evaluation, checkpoint
};

Named named_times(const trace::RankTimeline& timeline) {
  std::vector<bool> is_phase(timeline.names.size(), false), is_rare(timeline.names.size(), false);
  for (const ranges::PhaseInfo& phase : ranges::kPhases)
    is_phase[timeline.names.find(phase.name)] = true;
  for (const ranges::Phase phase : {ranges::Phase::kEval, ranges::Phase::kCheckpoint})
    is_rare[timeline.names.find(ranges::name_of(phase))] = true;
  is_phase[trace::kNoName] = is_rare[trace::kNoName] = false;
  std::vector<Interval> all, rare;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const trace::NameId name = timeline.name_id(row);
    if (!is_phase[name] || timeline.kind(row) != trace::Kind::kHostRange) continue;
    all.push_back({timeline.start_ns(row), timeline.end_ns(row)});
    if (is_rare[name]) rare.push_back(all.back());
  }
  return {IntervalSet(std::move(all)), IntervalSet(std::move(rare))};
}

}  // namespace

void StepGaps::add(const StepGaps& other) {
  gaps += other.gaps;
  total_ns += other.total_ns;
  unnamed_ns += other.unnamed_ns;
}

StepGaps step_gaps(const RankView& rank) {
  StepGaps found;
  if (rank.steps.size() < 2) return found;
  const Named named = named_times(*rank.timeline);
  const IntervalSet known = named.all | rank.activity.communication;
  for (std::size_t i = 1; i < rank.steps.size(); ++i) {
    const StepRow &before = rank.steps[i - 1], &after = rank.steps[i];
    const Interval gap{before.window.end_ns, after.window.start_ns};
    const bool follows = before.step && after.step && *after.step == *before.step + 1;
    if (!follows || gap.length_ns() < 0 || named.rare.length_within_ns(gap) > 0) continue;
    ++found.gaps;
    found.total_ns += gap.length_ns();
    found.unnamed_ns += gap.length_ns() - known.length_within_ns(gap);
  }
  return found;
}

}  // namespace sidestream::analysis
