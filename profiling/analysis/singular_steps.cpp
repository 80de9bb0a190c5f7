#include "profiling/analysis/singular_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "profiling/analysis/phase_times.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/statistics/median.hpp"
#include "profiling/statistics/outliers.hpp"

namespace sidestream::analysis {
namespace {

// One rank evaluates or saves, and the others wait for it: it is the same step on all of them.
void tag_on_all_ranks(std::vector<RankView>& ranks, ranges::Phase phase) {
  const std::string tag(ranges::name_of(phase));
  std::set<std::pair<std::string, std::int64_t>> tagged;  // window, step
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (step.step && step.has_tag(tag)) tagged.insert({rank.timeline->info.window, *step.step});
    }
  }
  for (RankView& rank : ranks) {
    for (StepRow& step : rank.steps) {
      if (step.step && !step.has_tag(tag) &&
          tagged.contains({rank.timeline->info.window, *step.step}))
        step.tags.push_back(tag);
    }
  }
}

// The rest of a step that was cut off is in another file.
void tag_rests(std::vector<RankView>& ranks) {
  std::set<std::pair<int, std::int64_t>> cut;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (step.step && step.has_tag(StepRow::kUnfinished)) cut.insert({step.rank, *step.step});
    }
  }
  for (RankView& rank : ranks) {
    for (StepRow& step : rank.steps) {
      if (step.step && cut.contains({step.rank, *step.step}) && !step.has_tag(StepRow::kUnfinished))
        step.tags.push_back(StepRow::kUnfinished);
    }
  }
}

// Before every event.
constexpr std::int64_t kEarliestNs = -(std::int64_t{1} << 61);

// On the clock of the file.
std::int64_t complete_from_ns(const trace::RankInfo& info) {
  if (!info.complete_from_ns) return kEarliestNs;
  return *info.complete_from_ns - std::max<std::int64_t>(0, info.base_ns);
}

void tag_incomplete(std::vector<RankView>& ranks) {
  std::set<std::int64_t> incomplete;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (step.step && step.window.start_ns < complete_from_ns(rank.timeline->info))
        incomplete.insert(*step.step);
    }
  }
  for (RankView& rank : ranks) {
    for (StepRow& step : rank.steps) {
      if (step.step && incomplete.contains(*step.step)) step.tags.push_back(StepRow::kIncomplete);
    }
  }
}

// Of steps without tags, the longest of all ranks.
std::map<std::int64_t, std::int64_t> lengths_of(const std::vector<RankView>& ranks) {
  std::map<std::int64_t, std::int64_t> lengths;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (!step.step || !step.tags.empty()) continue;
      std::int64_t& longest = lengths[*step.step];
      longest = std::max(longest, step.budget.window_ns);
    }
  }
  return lengths;
}

// The phase that takes most of a step.
std::string longest_phase(const PhasesOfSteps& phases, const StepRow& step) {
  const std::map<std::string, std::int64_t> times = phases.times_in(step);
  std::string name;
  std::int64_t longest_ns = 0;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const auto found = times.find(std::string(phase.name));
    if (found == times.end() || found->second <= longest_ns) continue;
    longest_ns = found->second;
    name = phase.name;
  }
  return 2 * longest_ns > step.window.length_ns() ? name : "";
}

std::int64_t waited_ns(const StepRow& step) {
  return step.budget.exposed_comm_ns + step.idle.comm_ns;
}

}  // namespace

void tag_singular_steps(std::vector<RankView>& ranks) {
  tag_on_all_ranks(ranks, ranges::Phase::kEval);
  tag_on_all_ranks(ranks, ranges::Phase::kCheckpoint);
  tag_rests(ranks);
  tag_incomplete(ranks);
  const std::set<std::int64_t> outliers = statistics::outliers_among(lengths_of(ranks));
  for (RankView& rank : ranks) {
    std::vector<Interval> singular;
    // Also of steps whose own ranges are among the lost.
    singular.push_back({kEarliestNs, complete_from_ns(rank.timeline->info)});
    for (StepRow& step : rank.steps) {
      if (step.step && step.tags.empty() && outliers.contains(*step.step))
        step.tags.push_back(StepRow::kOutlier);
      if (step.is_singular()) singular.push_back(step.window);
    }
    rank.singular = IntervalSet(std::move(singular));
  }
}

std::vector<statistics::Outlier> find_outliers(const std::vector<RankView>& ranks) {
  struct Place {
    const RankView* rank;
    const StepRow* step;
  };
  std::map<std::int64_t, Place> least_waiting;
  std::map<std::int64_t, statistics::Outlier> found;
  std::vector<std::int64_t> lengths;
  for (const auto& [step, length_ns] : lengths_of(ranks)) lengths.push_back(length_ns);
  const std::int64_t median_ns = std::max<std::int64_t>(1, statistics::upper_median(lengths));
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (!step.has_tag(StepRow::kOutlier)) continue;
      statistics::Outlier& one = found[*step.step];
      one.step = *step.step;
      one.length_ns = std::max(one.length_ns, step.window.length_ns());
      const auto [place, is_new] = least_waiting.try_emplace(one.step, Place{&rank, &step});
      if (waited_ns(step) < waited_ns(*place->second.step)) place->second = {&rank, &step};
    }
  }
  std::map<const RankView*, PhasesOfSteps> phases;
  std::vector<statistics::Outlier> list;
  for (auto& [step, one] : found) {
    const Place& place = least_waiting.at(step);
    one.medians = static_cast<double>(one.length_ns) / static_cast<double>(median_ns);
    one.rank = place.step->rank;
    one.phase =
        longest_phase(phases.try_emplace(place.rank, *place.rank).first->second, *place.step);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace sidestream::analysis
