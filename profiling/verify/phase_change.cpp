#include "profiling/verify/phase_change.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_set>

#include "profiling/analysis/host_ranges.hpp"
#include "profiling/analysis/interval_set.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::verify {
namespace {

using analysis::IntervalSet;

constexpr const char* kCollectives = "collectives outside the phases";
constexpr const char* kRest = "outside the phases";

struct NamedSet {
  std::string name;
  IntervalSet times;
};

// No moment is in two of them. What may lie inside another phase comes first: copies inside
// reading, evaluation inside anything.
std::vector<NamedSet> exclusive_phases(const analysis::RankView& rank) {
  constexpr std::array kInner = {ranges::Phase::kHostToDevice, ranges::Phase::kZeroGrad,
                                 ranges::Phase::kEval, ranges::Phase::kCheckpoint};
  std::vector<const char*> names;
  for (const ranges::Phase phase : kInner) names.push_back(ranges::info_of(phase).name);
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const bool listed =
        std::find(names.begin(), names.end(), std::string(phase.name)) != names.end();
    if (phase.category != ranges::Category::kCommunication && !listed) names.push_back(phase.name);
  }
  std::vector<NamedSet> phases;
  IntervalSet covered;
  for (const char* name : names) {
    const IntervalSet times = analysis::host_ranges(*rank.timeline, name);
    phases.push_back({name, times - covered});
    covered = covered | times;
  }
  if (covered.empty()) return {};
  phases.push_back({kCollectives, rank.exposed_communication - covered});
  return phases;
}

using Times = std::map<std::string, double>;  // phase -> ms of a mean step

Times phases_of(const analysis::Analysis& all) {
  const std::vector<const analysis::StepRow*> steps = analysis::plain_steps(all.ranks);
  const std::unordered_set<const analysis::StepRow*> plain(steps.begin(), steps.end());
  const double to_ms = 1e-6 / static_cast<double>(std::max<std::size_t>(1, plain.size()));
  Times times;
  for (const analysis::RankView& rank : all.ranks) {
    const std::vector<NamedSet> phases = exclusive_phases(rank);
    if (phases.empty()) return {};
    for (const analysis::StepRow& step : rank.steps) {
      if (!plain.contains(&step)) continue;
      double rest = static_cast<double>(step.window.length_ns()) * to_ms;
      for (const NamedSet& phase : phases) {
        const double part = static_cast<double>(phase.times.length_within_ns(step.window)) * to_ms;
        times[phase.name] += part;
        rest -= part;
      }
      times[kRest] += rest;
    }
  }
  return times;
}

}  // namespace

std::vector<Part> phases_of_change(const analysis::Analysis& base,
                                   const analysis::Analysis& fresh) {
  Times left = phases_of(base), right = phases_of(fresh);
  if (left.empty() || right.empty()) return {};
  std::vector<std::string> names;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) names.emplace_back(phase.name);
  names.insert(names.end(), {kCollectives, kRest});
  std::vector<Part> parts;
  for (const std::string& name : names) {
    if (left[name] != 0 || right[name] != 0) parts.push_back({name, left[name], right[name]});
  }
  return parts;
}

}  // namespace sidestream::verify
