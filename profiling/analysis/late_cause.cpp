#include "profiling/analysis/late_cause.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/phase_times.hpp"
#include "profiling/analysis/step_gaps.hpp"
#include "profiling/ranges/phase_named.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::analysis {
namespace {

using TimesOfRanks = std::map<int, std::map<std::string, std::int64_t>>;  // over a rank's files

struct Longer {
  std::string name = {};
  std::int64_t own_ns = 0;
  std::int64_t excess_ns = 0;  // over the median of the others
};

// What the others do not have takes them no time.
std::int64_t median_of_others(const TimesOfRanks& times, int rank, const std::string& name) {
  std::vector<std::int64_t> others;
  for (const auto& [other, of_name] : times) {
    const auto found = of_name.find(name);
    if (other != rank) others.push_back(found == of_name.end() ? 0 : found->second);
  }
  return std::llround(statistics::median(std::move(others)));
}

std::vector<Longer> all_longer(const TimesOfRanks& times, int rank) {
  std::vector<Longer> longer;
  for (const auto& [name, own_ns] : times.at(rank)) {
    const std::int64_t excess_ns = own_ns - median_of_others(times, rank, name);
    if (excess_ns > 0) longer.push_back({name, own_ns, excess_ns});
  }
  return longer;
}

Longer longest_of(const std::vector<Longer>& all) {
  const auto most = std::ranges::max_element(all, {}, &Longer::excess_ns);
  return most == all.end() ? Longer{} : *most;
}

Longer longer_phase(const std::vector<RankView>& ranks, int rank) {
  TimesOfRanks times;
  for (const RankView& one : ranks) {
    auto& phases = times[one.timeline->info.rank];
    for (const auto& [phase, time_ns] : phase_times(one)) phases[phase] += time_ns;
    phases[kBetweenSteps] += step_gaps(one).unnamed_ns;
  }
  return longest_of(all_longer(times, rank));
}

// Of what the rank does, idle time that a collective ends.
IntervalSet before_collectives(const DeviceActivity& activity) {
  const IntervalSet busy = activity.busy();
  const std::vector<Interval>& stretches = busy.intervals();
  std::vector<Interval> gaps;
  for (std::size_t i = 1; i < stretches.size(); ++i) {
    const std::int64_t next_ns = stretches[i].start_ns;
    if (activity.communication.contains(next_ns) && !activity.compute.contains(next_ns))
      gaps.push_back({stretches[i - 1].end_ns, next_ns});
  }
  return IntervalSet(std::move(gaps));
}

// Computing and other work of the host, in steps. To a barrier a rank comes by itself: all idle
// time before it is its own.
Longer longer_work(const std::vector<RankView>& ranks, int rank, bool late_by_itself) {
  TimesOfRanks times;
  for (const RankView& one : ranks) {
    auto& work = times[one.timeline->info.rank];
    const IntervalSet waits = late_by_itself ? IntervalSet() : before_collectives(one.activity);
    for (const StepRow& step : one.steps) {
      if (!one.counts(step)) continue;
      work[statistics::kComputing] += step.budget.compute_ns;
      const std::int64_t idle_ns = step.idle.host_ns + step.idle.other_ns;
      work[statistics::kOtherWork] +=
          std::max<std::int64_t>(0, idle_ns - waits.length_within_ns(step.window));
    }
  }
  return longest_of(all_longer(times, rank));
}

// By name, of ranges that are neither a phase, a step nor a collective.
std::vector<bool> may_be_the_users(const trace::NameTable& names) {
  const NameClasses classes(names);
  std::vector<bool> may_be(names.size(), false);
  for (trace::NameId id = 1; id < names.size(); ++id) {
    const bool plain = classes[id] == NameClass::kPlain || classes[id] == NameClass::kInputRange;
    may_be[id] = plain && ranges::phase_named(names[id]) == nullptr;
  }
  return may_be;
}

std::set<std::uint32_t> tracks_of_steps(const trace::RankTimeline& timeline) {
  std::set<std::uint32_t> tracks;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == trace::Kind::kHostRange &&
        timeline.name(row).starts_with(ranges::kStepPrefix))
      tracks.insert(timeline.track_of(row));
  }
  return tracks;
}

std::map<std::string, std::int64_t> times_of_users_ranges(const RankView& rank) {
  const trace::RankTimeline& timeline = *rank.timeline;
  const std::set<std::uint32_t> tracks = tracks_of_steps(timeline);
  const std::vector<bool> may_be = may_be_the_users(timeline.names);
  std::map<trace::NameId, std::vector<Interval>> intervals;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const bool range = timeline.kind(row) == trace::Kind::kHostRange;
    if (range && may_be[timeline.name_id(row)] && rank.counts(row) &&
        tracks.contains(timeline.track_of(row)))
      intervals[timeline.name_id(row)].push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  const IntervalSet windows = rank.counted_windows();
  std::map<std::string, std::int64_t> times;
  for (auto& [name, list] : intervals) {
    const IntervalSet own = (IntervalSet(std::move(list)) & windows) - rank.exposed_communication;
    times[std::string(timeline.names[name])] = own.length_ns();
  }
  return times;
}

// A range of the user's around whole steps says nothing that the rank does not.
Longer longer_users_range(const std::vector<RankView>& ranks, int rank) {
  constexpr double kWholeStep = 0.9, kAboutAsMuch = 0.8;
  const std::string all_of_it;  // as a name: what a rank does in its steps but wait
  TimesOfRanks times;
  for (const RankView& one : ranks) {
    auto& of_rank = times[one.timeline->info.rank];
    for (const auto& [name, time_ns] : times_of_users_ranges(one)) of_rank[name] += time_ns;
    of_rank[all_of_it] += (one.counted_windows() - one.exposed_communication).length_ns();
  }
  const double step_ns = static_cast<double>(median_of_others(times, rank, all_of_it));
  std::vector<Longer> longer = all_longer(times, rank);
  std::erase_if(longer, [&](const Longer& one) {
    return static_cast<double>(one.own_ns - one.excess_ns) > kWholeStep * step_ns ||
           one.name == all_of_it;
  });
  const double most_ns = static_cast<double>(longest_of(longer).excess_ns);
  std::erase_if(longer, [&](const Longer& one) {
    return static_cast<double>(one.excess_ns) < kAboutAsMuch * most_ns;
  });
  const auto shortest = std::ranges::min_element(longer, {}, &Longer::own_ns);
  return shortest == longer.end() ? Longer{} : *shortest;
}

// The kind of collective to which this rank came late at the highest cost to the others.
std::string late_to(const CollectiveMatches& matches, int rank) {
  std::map<std::string, std::int64_t> caused;
  for (const MatchedCollective& one : matches.matched) {
    if (one.last().rank != rank) continue;
    for (const CollectivePart& part : one.parts)
      caused[one.kernel] += part.duration_ns - one.transfer_ns;
  }
  const auto most =
      std::max_element(caused.begin(), caused.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == caused.end() ? "" : most->first;
}

}  // namespace

std::string cause_of_lateness(const std::vector<RankView>& ranks, const CollectiveMatches& matches,
                              const statistics::LateRank& late) {
  const std::int64_t cost_ns = late.cost_ns_per_step * late.steps;
  const auto explains = [&](const Longer& one) {
    return !one.name.empty() && 2 * one.excess_ns >= cost_ns;
  };
  const std::string collective = late_to(matches, late.rank);
  const bool by_itself =
      collective.empty() || collective == ranges::name_of(ranges::Phase::kBarrier);
  const Longer phase = longer_phase(ranks, late.rank);
  const Longer work = longer_work(ranks, late.rank, by_itself);
  const bool idles_longer = work.name == statistics::kOtherWork && work.excess_ns > phase.excess_ns;
  if (explains(phase) && !(explains(work) && idles_longer)) return phase.name;
  const Longer users_range = longer_users_range(ranks, late.rank);
  if (explains(users_range)) return users_range.name;
  if (explains(work)) return work.name;
  return ranges::is_collective_name(collective) ? collective : "";
}

}  // namespace sidestream::analysis
