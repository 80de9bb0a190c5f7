#include "profiling/analysis/collective_table.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profiling/analysis/collective_list.hpp"
#include "profiling/analysis/host_activity.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;
using Key = std::tuple<std::string, std::int64_t, std::int64_t>;  // name, bucket, bytes

struct CollectiveSums {
  CollectiveRow row;
  std::int64_t events = 0;
  int parts = 0;  // of a matched one, at most
  std::int64_t matched = 0;
  std::int64_t transfer_ns = 0;     // of the matched ones, each once
  std::int64_t transfer_parts = 0;  // the same of all ranks that took part, nanoseconds
  std::int64_t wait_ns = 0;         // of all ranks
  double moved_bytes = 0;           // one input each; of a gather the inputs of all ranks
  std::map<int, int> came_last;
};

// Ranks may send different sizes: a matched collective goes by the largest of them on all ranks.
using MatchedKeys = std::vector<std::unordered_map<std::size_t, Key>>;  // by file, then row

Key key_of(const CollectiveFacts& facts) { return {facts.name, facts.bucket, facts.bytes}; }

bool is_gather(const std::string& name) { return name.find("gather") != std::string::npos; }

CollectiveFacts facts_of(const std::vector<RankView>& ranks, const CollectivePart& part) {
  return collective_facts(*ranks[part.timeline].timeline, part.row);
}

Key key_of(const MatchedCollective& one, const std::vector<RankView>& ranks) {
  CollectiveFacts facts = facts_of(ranks, one.parts.front());
  for (const CollectivePart& part : one.parts)
    facts.bytes = std::max(facts.bytes, facts_of(ranks, part).bytes);
  return key_of(facts);
}

MatchedKeys matched_keys(const CollectiveMatches& matches, const std::vector<RankView>& ranks) {
  MatchedKeys keys(ranks.size());
  for (const MatchedCollective& one : matches.matched) {
    const Key key = key_of(one, ranks);
    for (const CollectivePart& part : one.parts) keys[part.timeline][part.row] = key;
  }
  return keys;
}

// A wait that the trace shows: on the device's timeline, or of the host that feeds it.
IntervalSet waits_for_device(const RankTimeline& timeline) {
  std::vector<Interval> waits;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == trace::Kind::kDeviceSync)
      waits.push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  const HostActivity host = host_activity(timeline);
  return IntervalSet(std::move(waits)) | host.sync | host.communication;
}

// Exposed communication while nothing else could be done. A host rank that neither computes nor
// fetches its input waits: collectives run beside its thread, and leave no wait on it.
IntervalSet blocking_of(const RankView& rank, const IntervalSet& exposed) {
  if (rank.activity.where == Where::kHost) return exposed - host_activity(*rank.timeline).data;
  return exposed & waits_for_device(*rank.timeline);
}

// All of a trace without steps.
IntervalSet counted_time(const RankView& rank) {
  std::vector<Interval> windows;
  for (const StepRow& step : rank.steps) {
    if (rank.counts(step)) windows.push_back(step.window);
  }
  if (rank.steps.empty()) windows.push_back({INT64_MIN / 4, INT64_MAX / 4});
  return IntervalSet(std::move(windows));
}

struct Hidden {
  IntervalSet exposed, overlapped;
};

// A device whose host communicates for it has nothing of it on its own timeline.
Hidden hidden_of(const RankView& rank) {
  if (rank.activity.where != Where::kDevice || !rank.activity.communication.empty())
    return {rank.exposed_communication, rank.overlapped_communication};
  const IntervalSet staged = host_activity(*rank.timeline).communication;
  const IntervalSet busy = rank.activity.busy();
  return {staged - busy, staged & busy};
}

// What each collective has of the time of all: where several are in flight, the one that began
// first. In the order of their start, no two at the same time.
std::vector<std::pair<std::size_t, Interval>> shared_out(
    const RankTimeline& timeline, const std::map<std::string, std::vector<std::size_t>>& groups) {
  std::vector<std::size_t> rows;
  for (const auto& [group, of_group] : groups)
    rows.insert(rows.end(), of_group.begin(), of_group.end());
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(timeline.start_ns(a), a) < std::pair(timeline.start_ns(b), b);
  });
  std::vector<std::pair<std::size_t, Interval>> parts;
  std::int64_t given_until_ns = INT64_MIN;
  for (const std::size_t row : rows) {
    const std::int64_t end_ns = timeline.end_ns(row);
    const std::int64_t start_ns = std::max(timeline.start_ns(row), given_until_ns);
    parts.push_back({row, {std::min(start_ns, end_ns), end_ns}});
    given_until_ns = std::max(given_until_ns, end_ns);
  }
  return parts;
}

void add_rank(std::map<Key, CollectiveSums>& table, const RankView& rank,
              const std::unordered_map<std::size_t, Key>& matched) {
  const auto groups = collectives_by_group(*rank.timeline);
  if (groups.empty()) return;
  const IntervalSet counted = counted_time(rank);
  const Hidden hidden = hidden_of(rank);
  const IntervalSet exposed = hidden.exposed & counted;
  const IntervalSet overlapped = hidden.overlapped & counted;
  const IntervalSet blocking = blocking_of(rank, exposed);
  for (const auto& [row, part] : shared_out(*rank.timeline, groups)) {
    const std::int64_t exposed_ns = exposed.length_within_ns(part);
    const std::int64_t overlapped_ns = overlapped.length_within_ns(part);
    // One that began before a step that counts may reach into it.
    if (!rank.counts(row) && exposed_ns + overlapped_ns == 0) continue;
    const CollectiveFacts facts = collective_facts(*rank.timeline, row);
    const auto key = matched.find(row);
    CollectiveSums& sums = table[key == matched.end() ? key_of(facts) : key->second];
    sums.row.group_size = std::max(sums.row.group_size, facts.group_size);
    sums.row.exposed_ns += exposed_ns;
    sums.row.overlapped_ns += overlapped_ns;
    sums.row.blocking_ns += blocking.length_within_ns(part);
    if (!rank.counts(row)) continue;
    ++sums.events;
    sums.row.total_ns += rank.timeline->duration_ns(row);
  }
}

// Bytes that algorithm bandwidth counts. Ranks that are not in the trace gather as much as those
// that are.
double moved_bytes(const MatchedCollective& one, const std::vector<RankView>& ranks,
                   const Key& key) {
  const auto& [name, bucket, bytes] = key;
  if (!is_gather(name)) return static_cast<double>(bytes);
  double sum = 0;
  for (const CollectivePart& part : one.parts)
    sum += static_cast<double>(facts_of(ranks, part).bytes);
  const auto parts = static_cast<double>(one.parts.size());
  const int group = facts_of(ranks, one.parts.front()).group_size;
  return sum * std::max<double>(group, parts) / parts;
}

void add_match(std::map<Key, CollectiveSums>& table, const MatchedCollective& one,
               const std::vector<RankView>& ranks) {
  const Key key = key_of(one, ranks);
  const auto parts = static_cast<std::int64_t>(one.parts.size());
  CollectiveSums& sums = table[key];
  ++sums.matched;
  sums.transfer_ns += one.transfer_ns;
  sums.transfer_parts += one.transfer_ns * parts;
  sums.parts = std::max(sums.parts, static_cast<int>(parts));
  for (const CollectivePart& part : one.parts) sums.wait_ns += part.duration_ns - one.transfer_ns;
  sums.moved_bytes += moved_bytes(one, ranks, key);
  ++sums.came_last[one.last().rank];
}

bool counts(const MatchedCollective& one, const std::vector<RankView>& ranks) {
  return std::all_of(one.parts.begin(), one.parts.end(), [&](const CollectivePart& part) {
    return ranks[part.timeline].counts(part.row);
  });
}

double bus_factor(const std::string& name, int ranks) {
  if (ranks < 2) return 1;
  const double n = ranks;
  if (name.find("allreduce") != std::string::npos || name.find("all_reduce") != std::string::npos)
    return 2 * (n - 1) / n;
  for (const char* word : {"gather", "scatter", "all_to_all", "alltoall"}) {
    if (name.find(word) != std::string::npos) return (n - 1) / n;
  }
  return 1;
}

void fill_bandwidth(CollectiveRow& row, const CollectiveSums& sums) {
  if (row.bytes < 0 || sums.transfer_ns <= 0) return;
  row.alg_gb_per_s = sums.moved_bytes / static_cast<double>(sums.transfer_ns);
  row.bus_gb_per_s = *row.alg_gb_per_s * bus_factor(row.name, std::max(row.group_size, sums.parts));
}

CollectiveRow finished(const Key& key, const CollectiveSums& sums, std::int64_t ranks) {
  CollectiveRow row = sums.row;
  std::tie(row.name, row.bucket, row.bytes) = key;
  row.count = std::max<std::int64_t>(1, (sums.events + ranks / 2) / ranks);
  // A matched one has its own duration in both.
  row.unmatched_ns = (row.total_ns - sums.transfer_parts - sums.wait_ns) / ranks;
  row.total_ns /= ranks;
  if (sums.matched == 0) return row;
  row.transfer_ns = sums.transfer_parts / ranks;
  row.wait_ns = sums.wait_ns / ranks;
  row.slowest_rank =
      std::max_element(sums.came_last.begin(), sums.came_last.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; })
          ->first;
  fill_bandwidth(row, sums);
  return row;
}

// The mean of the ranks, so that the rows add up to the mean of all of them, rounded down.
void take_means(std::vector<CollectiveRow>& rows, std::int64_t CollectiveRow::*time_ns,
                std::int64_t ranks) {
  std::int64_t sum_ns = 0;
  for (CollectiveRow& row : rows) {
    const std::int64_t before = sum_ns / ranks;
    sum_ns += row.*time_ns;
    row.*time_ns = sum_ns / ranks - before;
  }
}

}  // namespace

bool have_sizes_changed(const std::vector<CollectiveRow>& rows) {
  std::set<std::pair<std::string, std::int64_t>> buckets;
  return std::any_of(rows.begin(), rows.end(), [&](const CollectiveRow& row) {
    return row.bucket >= 0 && !buckets.emplace(row.name, row.bucket).second;
  });
}

std::vector<CollectiveRow> collective_table(const std::vector<RankView>& ranks,
                                            const CollectiveMatches& matches) {
  std::map<Key, CollectiveSums> table;
  const MatchedKeys keys = matched_keys(matches, ranks);
  for (std::size_t file = 0; file < ranks.size(); ++file) add_rank(table, ranks[file], keys[file]);
  for (const MatchedCollective& one : matches.matched) {
    if (counts(one, ranks)) add_match(table, one, ranks);
  }
  std::vector<CollectiveRow> rows;
  std::set<int> numbers;  // a rank has a file for each window
  for (const RankView& rank : ranks) numbers.insert(rank.timeline->info.rank);
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, numbers.size()));
  for (const auto& [key, sums] : table) rows.push_back(finished(key, sums, count));
  for (const auto time_ns :
       {&CollectiveRow::exposed_ns, &CollectiveRow::overlapped_ns, &CollectiveRow::blocking_ns})
    take_means(rows, time_ns, count);
  std::stable_sort(rows.begin(), rows.end(), [](const CollectiveRow& a, const CollectiveRow& b) {
    return a.exposed_ns > b.exposed_ns;
  });
  return rows;
}

}  // namespace sidestream::analysis
