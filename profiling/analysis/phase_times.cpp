#include "profiling/analysis/phase_times.hpp"

#include <vector>

#include "profiling/analysis/interval_set.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::analysis {

std::map<std::string, std::int64_t> phase_times(const RankView& rank) {
  const trace::RankTimeline& timeline = *rank.timeline;
  std::map<trace::NameId, std::vector<Interval>> of_phase;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const trace::NameId id = timeline.names.find(phase.name);
    if (id != trace::kNoName) of_phase[id];
  }
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != trace::Kind::kHostRange || !rank.counts(row)) continue;
    const auto phase = of_phase.find(timeline.name_id(row));
    if (phase != of_phase.end())
      phase->second.push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  std::map<std::string, std::int64_t> times;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const auto found = of_phase.find(timeline.names.find(phase.name));
    if (phase.category == ranges::Category::kCommunication || found == of_phase.end()) continue;
    times[phase.name] = IntervalSet(found->second).length_ns();
  }
  return times;
}

}  // namespace sidestream::analysis
