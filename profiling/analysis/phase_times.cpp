#include "profiling/analysis/phase_times.hpp"

#include <functional>
#include <utility>
#include <vector>

#include "profiling/analysis/interval_set.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::analysis {

namespace {

using Counts = std::function<bool(std::size_t row)>;

std::map<std::string, IntervalSet> phase_sets(const trace::RankTimeline& timeline,
                                              const Counts& counts) {
  std::map<trace::NameId, std::vector<Interval>> of_phase;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const trace::NameId id = timeline.names.find(phase.name);
    if (id != trace::kNoName) of_phase[id];
  }
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != trace::Kind::kHostRange || !counts(row)) continue;
    const auto phase = of_phase.find(timeline.name_id(row));
    if (phase != of_phase.end())
      phase->second.push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  std::map<std::string, IntervalSet> sets;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const auto found = of_phase.find(timeline.names.find(phase.name));
    if (phase.category == ranges::Category::kCommunication || found == of_phase.end()) continue;
    sets.emplace(phase.name, IntervalSet(std::move(found->second)));
  }
  return sets;
}

}  // namespace

std::map<std::string, std::int64_t> phase_times(const RankView& rank) {
  std::map<std::string, std::int64_t> times;
  const auto counts = [&](std::size_t row) { return rank.counts(row); };
  for (const auto& [phase, set] : phase_sets(*rank.timeline, counts))
    times[phase] = set.length_ns();
  return times;
}

PhasesOfSteps::PhasesOfSteps(const RankView& rank)
    : sets_(phase_sets(*rank.timeline, [](std::size_t) { return true; })) {}

std::map<std::string, std::int64_t> PhasesOfSteps::times_in(const StepRow& step) const {
  std::map<std::string, std::int64_t> times;
  for (const auto& [phase, set] : sets_) times[phase] = set.length_within_ns(step.window);
  return times;
}

}  // namespace sidestream::analysis
