#include "profiling/analysis/align.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiling/trace/clock_bounds.hpp"
#include "profiling/trace/clock_fit.hpp"
#include "profiling/trace/time_windows.hpp"

namespace sidestream::analysis {
namespace {

using trace::ClockFit;
using trace::ClockModel;
using trace::ClockPair;
using trace::TraceSet;

// A rank's clock goes by that of another rank, with which it shares collectives: the reference
// where it can, else one that goes by the reference itself, and so on.
struct Link {
  int rank = 0;
  int anchor = 0;
  std::vector<ClockPair> ends;      // reference_ns: on the anchor's own clock
  trace::ClockBounds moments = {};  // the same
};

std::int64_t wall_start_ns(const TraceSet& set, const CollectivePart& part) {
  return part.start_ns + set.timelines[part.timeline].info.base_ns;
}
std::int64_t wall_end_ns(const TraceSet& set, const CollectivePart& part) {
  return part.end_ns() + set.timelines[part.timeline].info.base_ns;
}

// Every rank needs what every other one has: none leaves before the last has entered. Not so a
// broadcast, or a send and its receive.
bool all_wait_for_all(std::string name) {
  std::erase(name, '_');
  for (char& letter : name)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  for (const char* word : {"allreduce", "reducescatter", "allgather", "alltoall", "barrier"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

std::vector<int> ranks_of(const MatchedCollective& one) {
  std::vector<int> ranks;
  for (const CollectivePart& part : one.parts) ranks.push_back(part.rank);
  return ranks;
}

// Breadth first from the reference over the groups of ranks that share collectives; ranks that are
// not reached have no link.
std::vector<Link> links_from(int reference, const CollectiveMatches& matches) {
  std::set<std::vector<int>> groups;
  for (const MatchedCollective& one : matches.matched) groups.insert(ranks_of(one));
  std::vector<Link> links;
  std::set<int> seen = {reference};
  for (std::deque<int> next = {reference}; !next.empty(); next.pop_front()) {
    for (const std::vector<int>& group : groups) {
      if (std::find(group.begin(), group.end(), next.front()) == group.end()) continue;
      for (const int rank : group) {
        if (!seen.insert(rank).second) continue;
        links.push_back({.rank = rank, .anchor = next.front(), .ends = {}});
        next.push_back(rank);
      }
    }
  }
  return links;
}

// Ends of matched collectives of a rank and its anchor lie no further apart than the longer of the
// two. A microsecond is what profilers round.
void add_moments(Link& link, const TraceSet& set, const MatchedCollective& one,
                 const CollectivePart& mine, const CollectivePart& anchors) {
  constexpr std::int64_t kRoundingNs = 1000;
  link.ends.push_back({wall_end_ns(set, mine), wall_end_ns(set, anchors),
                       std::max(mine.duration_ns, anchors.duration_ns)});
  if (!all_wait_for_all(one.kernel)) return;
  link.moments.not_before.push_back(
      {wall_end_ns(set, mine), wall_start_ns(set, anchors) - kRoundingNs});
  link.moments.not_after.push_back(
      {wall_start_ns(set, mine), wall_end_ns(set, anchors) + kRoundingNs});
}

// In an order in which anchors come before those that go by them.
std::vector<Link> find_links(const TraceSet& set, const CollectiveMatches& matches, int reference) {
  std::vector<Link> links = links_from(reference, matches);
  std::map<int, Link*> of_rank;
  for (Link& link : links) of_rank[link.rank] = &link;
  for (const MatchedCollective& one : matches.matched) {
    std::map<int, const CollectivePart*> part_of;
    for (const CollectivePart& part : one.parts) part_of[part.rank] = &part;
    for (const CollectivePart& part : one.parts) {
      const auto link = of_rank.find(part.rank);
      if (link == of_rank.end()) continue;
      const auto anchor = part_of.find(link->second->anchor);
      if (anchor != part_of.end()) add_moments(*link->second, set, one, part, *anchor->second);
    }
  }
  return links;
}

// The anchor's clock is known by now: its moments become those of the common clock.
void move_to_common(Link& link, const ClockModel& clock) {
  const trace::RankClock anchor = clock.of(link.anchor);
  for (ClockPair& pair : link.ends) pair.reference_ns = anchor.to_common(pair.reference_ns);
  for (auto* list : {&link.moments.not_before, &link.moments.not_after}) {
    for (trace::ClockBound& one : *list) one.reference_ns = anchor.to_common(one.reference_ns);
  }
}

// The reference has none.
double of_rank(const std::map<int, double>& uncertainties, int rank) {
  const auto found = uncertainties.find(rank);
  return found == uncertainties.end() ? 0 : found->second;
}

// What is not known of the anchor is not known of the rank either.
void store(ClockModel& clock, const Link& link, const ClockFit& fit) {
  clock.ranks[link.rank] = fit.clock;
  clock.uncertainty_us[link.rank] = fit.uncertainty_us + of_rank(clock.uncertainty_us, link.anchor);
  clock.drift_uncertainty_ppm[link.rank] =
      fit.drift_uncertainty_ppm + of_rank(clock.drift_uncertainty_ppm, link.anchor);
}

bool one_host(const trace::ClockSamples& samples, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const auto found = samples.find(rank);
    if (found == samples.end() || found->second.boot_id.empty()) return false;
    if (found->second.boot_id != samples.at(ranks.front()).boot_id) return false;
  }
  return true;
}

// The ranks of one boot share a clock; a rank that does not say where it is has its own.
std::string host_of(const trace::ClockSamples& samples, int rank) {
  const auto found = samples.find(rank);
  const bool said = found != samples.end() && !found->second.boot_id.empty();
  return said ? found->second.boot_id : "rank " + std::to_string(rank);
}

struct HostSamples {
  std::vector<int> ranks;
  std::vector<ClockPair> pairs;    // of all of them
  std::int64_t round_trip_ns = 0;  // the longest
};

// Samples compare with the clock of rank 0, and so with that of every rank of its host.
void from_samples(ClockModel& clock, const trace::ClockSamples& samples) {
  clock.method = "samples";
  std::map<std::string, HostSamples> hosts;
  for (const auto& [rank, of_rank] : samples) {
    HostSamples& host = hosts[host_of(samples, rank)];
    host.ranks.push_back(rank);
    host.pairs.insert(host.pairs.end(), of_rank.pairs.begin(), of_rank.pairs.end());
    host.round_trip_ns = std::max(host.round_trip_ns, of_rank.round_trip_ns);
  }
  for (const auto& [name, host] : hosts) {
    const bool is_reference = name == host_of(samples, 0);
    if (host.pairs.empty() && !is_reference) continue;
    const ClockFit fit = is_reference ? ClockFit{} : trace::fit_clock(host.pairs);
    const double half_trip_us = is_reference ? 0 : static_cast<double>(host.round_trip_ns) / 2000;
    for (const int rank : host.ranks) {
      clock.ranks[rank] = fit.clock;
      clock.uncertainty_us[rank] = std::max(fit.uncertainty_us, half_trip_us);
      clock.drift_uncertainty_ppm[rank] = fit.drift_uncertainty_ppm;
    }
  }
}

// Collectives correct the clock of a host only where they agree among themselves better than its
// samples are known. Those that its ranks share with each other say nothing about it.
bool refine_host(ClockModel& clock, const std::vector<Link>& links,
                 const trace::ClockSamples& samples, const std::string& host) {
  std::vector<ClockPair> aligned;
  double anchors_us = 0;
  for (Link link : links) {
    if (host_of(samples, link.rank) != host || host_of(samples, link.anchor) == host) continue;
    move_to_common(link, clock);
    const trace::RankClock known = clock.of(link.rank);
    for (const ClockPair& pair : link.ends)
      aligned.push_back({known.to_common(pair.time_ns), pair.reference_ns, pair.slack_ns});
    anchors_us = std::max(anchors_us, of_rank(clock.uncertainty_us, link.anchor));
  }
  if (aligned.empty()) return false;
  const ClockFit rest = trace::fit_clock(aligned, trace::Drift::kNone);
  const double uncertainty_us = rest.uncertainty_us + anchors_us;
  bool refined = false;
  for (auto& [rank, of_rank] : clock.ranks) {
    if (host_of(samples, rank) != host || uncertainty_us >= clock.uncertainty_us[rank]) continue;
    of_rank.offset_ns += rest.clock.offset_ns;
    clock.uncertainty_us[rank] = uncertainty_us;
    refined = true;
  }
  return refined;
}

// Ranks without samples go by their collectives.
void refine(ClockModel& clock, std::vector<Link>& links, const trace::ClockSamples& samples) {
  bool refined = false;
  std::set<std::string> seen;
  for (const Link& link : links) {
    if (clock.ranks.contains(link.rank)) {
      const std::string host = host_of(samples, link.rank);
      if (seen.insert(host).second) refined = refine_host(clock, links, samples, host) || refined;
    } else {
      Link moved = link;
      move_to_common(moved, clock);
      store(clock, link, trace::fit_clock(moved.ends));
    }
  }
  for (Link& link : links) move_to_common(link, clock);
  if (refined) clock.method = "samples+collectives";
}

void from_collectives(ClockModel& clock, std::vector<Link>& links) {
  clock.method = "collectives";
  for (Link& link : links) {
    move_to_common(link, clock);
    ClockFit fit = trace::fit_clock(link.ends);
    trace::keep_within(fit, link.moments);
    store(clock, link, fit);
  }
}

void warn_about_lost_ranks(TraceSet& set, const std::vector<int>& ranks, int reference) {
  std::string lost;
  for (const int rank : ranks) {
    if (rank != reference && !set.clock.ranks.contains(rank))
      lost += (lost.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (lost.empty()) return;
  set.warnings.push_back("no collectives tie the clocks of ranks " + lost + " to that of rank " +
                         std::to_string(reference) + ": they keep their own clocks");
}

// On the common clock, of all windows.
trace::Extent extent_of_rank(const TraceSet& set, int rank) {
  const trace::RankClock clock = set.clock.of(rank);
  trace::Extent all;
  for (const trace::RankTimeline& timeline : set.timelines) {
    if (timeline.info.rank != rank) continue;
    const trace::Extent one = trace::extent_of(timeline);
    if (one.first_ns > one.last_ns) continue;
    all.first_ns = std::min(all.first_ns, clock.to_common(one.first_ns));
    all.last_ns = std::max(all.last_ns, clock.to_common(one.last_ns));
  }
  return all;
}

// How long after the reference's end a rank begins, or before its beginning ends; negative:
// neither.
std::int64_t gap_between(const trace::Extent& reference, const trace::Extent& rank) {
  return std::max(rank.first_ns - reference.last_ns, reference.first_ns - rank.last_ns);
}

// Such traces are of two runs, as a rule.
void warn_about_ranks_apart(TraceSet& set, const std::vector<int>& ranks, int reference) {
  constexpr std::int64_t kSecond = 1'000'000'000;  // clocks of one run may differ by less
  const trace::Extent first = extent_of_rank(set, reference);
  if (first.first_ns > first.last_ns) return;
  std::string apart;
  std::int64_t longest_ns = 0;
  for (const int rank : ranks) {
    const trace::Extent one = extent_of_rank(set, rank);
    if (one.first_ns > one.last_ns || gap_between(first, one) < kSecond) continue;
    apart += (apart.empty() ? "" : ", ") + std::to_string(rank);
    longest_ns = std::max(longest_ns, gap_between(first, one));
  }
  if (apart.empty()) return;
  set.warnings.push_back("the traces of ranks " + apart + " and that of rank " +
                         std::to_string(reference) + " lie up to " +
                         std::to_string(longest_ns / kSecond) + " s apart: are they of one run?");
}

// Moments of the anchors are common ones by now, except on one host, where all are.
void measure_residuals(ClockModel& clock, const std::vector<Link>& links) {
  std::vector<double> residuals;
  for (const Link& link : links) {
    const trace::RankClock of = clock.of(link.rank);
    for (const ClockPair& pair : link.ends)
      residuals.push_back(
          std::abs(static_cast<double>(of.to_common(pair.time_ns) - pair.reference_ns)) / 1000);
  }
  if (residuals.empty()) return;
  std::sort(residuals.begin(), residuals.end());
  const auto at = [&](double share) {
    return residuals[static_cast<std::size_t>(share * static_cast<double>(residuals.size() - 1) +
                                              0.5)];
  };
  clock.residual_us_p50 = at(0.5);
  clock.residual_us_p95 = at(0.95);
  clock.has_residual = true;
}

}  // namespace

void align_clocks(TraceSet& set, const CollectiveMatches& matches) {
  const std::vector<int> ranks = set.ranks();
  if (ranks.size() < 2) return;
  const int reference = ranks.front();
  std::vector<Link> links = find_links(set, matches, reference);
  ClockModel& clock = set.clock;
  if (set.samples && one_host(*set.samples, ranks)) {
    clock.method = "same host";
  } else if (set.samples) {
    from_samples(clock, *set.samples);
    refine(clock, links, *set.samples);
    warn_about_lost_ranks(set, ranks, reference);
  } else if (!links.empty()) {
    from_collectives(clock, links);
    set.warnings.push_back(
        "no clock samples beside the traces: ranks are aligned on matched collectives alone");
    warn_about_lost_ranks(set, ranks, reference);
  } else {
    set.warnings.push_back(
        "neither clock samples nor matched collectives: ranks keep their own clocks");
  }
  measure_residuals(clock, links);
  warn_about_ranks_apart(set, ranks, reference);
}

}  // namespace sidestream::analysis
