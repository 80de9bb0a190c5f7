#include "parallel/bucket_cut.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::parallel {
namespace {

using statistics::upper_median;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Gradients that travel together in any case: cuts are looked for between groups, so that a model
// of thousands of tensors takes no longer than one of hundreds.
constexpr std::size_t kMostGroups = 256;

// What the last collective may end later, of the time after the backward, to save buckets.
constexpr double kTolerance = 0.02;

struct Group {
  std::size_t parameters = 0;
  double bytes = 0;
  double ready_s = 0;  // when all of them and of the groups before are there
};

std::vector<Group> groups_of(const GradientTimes& times) {
  const double total =
      std::accumulate(times.bytes.begin(), times.bytes.end(), 0.0, std::plus<double>());
  std::vector<Group> groups;
  double ready_s = 0;
  for (std::size_t i = 0; i < times.bytes.size(); ++i) {
    const auto bytes = static_cast<double>(times.bytes[i]);
    ready_s = std::max(ready_s, times.ready_s[i]);
    const bool joins = times.bytes.size() > kMostGroups && !groups.empty() &&
                       groups.back().bytes + bytes <= total / kMostGroups;
    if (!joins) groups.emplace_back();
    groups.back().parameters += 1;
    groups.back().bytes += bytes;
    groups.back().ready_s = ready_s;
  }
  return groups;
}

// The last bucket of a prefix of the groups.
struct LastBucket {
  double end_s = kNever;
  std::size_t from = 0;  // the group that it begins with
};

// Of the first `count` groups, where ends_s[i] is when the collectives of the first i have ended.
LastBucket earliest_last(const std::vector<Group>& groups, const TransferCost& cost,
                         const std::vector<double>& ends_s, std::size_t count) {
  LastBucket best;
  double bytes = 0;
  for (std::size_t i = count; i-- > 0;) {
    bytes += groups[i].bytes;
    const double end_s = std::max(groups[count - 1].ready_s, ends_s[i]) + cost.seconds_for(bytes);
    if (end_s < best.end_s) best = {.end_s = end_s, .from = i};
  }
  return best;
}

// Before any collective: nothing has ended but the empty prefix.
std::vector<double> ends_of_none(const std::vector<Group>& groups) {
  std::vector<double> ends_s(groups.size() + 1, kNever);
  ends_s[0] = 0;
  return ends_s;
}

// ends_s[j]: the earliest end of collectives for the first j groups with as many buckets as rounds
// so far; from[j]: where the last of those buckets begins.
struct Round {
  std::vector<double> ends_s;
  std::vector<std::size_t> from;
};

Round next_round(const std::vector<Group>& groups, const TransferCost& cost,
                 const std::vector<double>& before_s) {
  Round round{.ends_s = {kNever}, .from = {0}};
  for (std::size_t j = 1; j <= groups.size(); ++j) {
    const LastBucket last = earliest_last(groups, cost, before_s, j);
    round.ends_s.push_back(last.end_s);
    round.from.push_back(last.from);
  }
  return round;
}

// With any number of buckets: an end that is found feeds those of longer prefixes at once.
double earliest_end(const std::vector<Group>& groups, const TransferCost& cost) {
  std::vector<double> ends_s = ends_of_none(groups);
  for (std::size_t j = 1; j <= groups.size(); ++j)
    ends_s[j] = earliest_last(groups, cost, ends_s, j).end_s;
  return ends_s.back();
}

BucketCut cut_of(const std::vector<Group>& groups, const std::vector<Round>& rounds) {
  BucketCut cut(rounds.size(), 0);
  std::size_t end = groups.size();
  for (std::size_t bucket = rounds.size(); bucket-- > 0;) {
    const std::size_t begin = rounds[bucket].from[end];
    for (std::size_t i = begin; i < end; ++i) cut[bucket] += groups[i].parameters;
    end = begin;
  }
  return cut;
}

// Between two samples; the weight is what they differ in.
struct Slope {
  double s_per_byte = 0;
  double weight = 0;
};

double weighted_median(std::vector<Slope> slopes) {
  std::sort(slopes.begin(), slopes.end(),
            [](const Slope& a, const Slope& b) { return a.s_per_byte < b.s_per_byte; });
  double left = 0;
  for (const Slope& slope : slopes) left += slope.weight / 2;
  std::size_t middle = 0;
  while (middle + 1 < slopes.size() && (left -= slopes[middle].weight) > 0) ++middle;
  return slopes[middle].s_per_byte;
}

}  // namespace

double TransferCost::seconds_for(double bytes) const {
  const auto step = static_cast<double>(step_bytes);
  return latency_s + s_per_byte * (std::ceil(bytes / step) * step);
}

TransferCost fit_transfer_cost(std::span<const TransferSample> samples) {
  std::vector<Slope> slopes;
  for (const TransferSample& small : samples) {
    for (const TransferSample& large : samples) {
      if (large.bytes <= small.bytes) continue;
      const auto bytes = static_cast<double>(large.bytes - small.bytes);
      slopes.push_back({.s_per_byte = (large.seconds - small.seconds) / bytes, .weight = bytes});
    }
  }
  if (slopes.empty())
    throw core::Error("Cost of a collective: expected samples of two sizes, found fewer.");
  TransferCost cost{.s_per_byte = std::max(0.0, weighted_median(std::move(slopes)))};
  std::vector<double> rest;
  for (const TransferSample& sample : samples)
    rest.push_back(sample.seconds - cost.s_per_byte * static_cast<double>(sample.bytes));
  cost.latency_s = std::max(0.0, upper_median(std::move(rest)));
  return cost;
}

double end_of_collectives(const GradientTimes& times, const TransferCost& cost,
                          const BucketCut& cut) {
  double end = 0;
  double ready_s = 0;
  std::size_t next = 0;
  for (const std::size_t parameters : cut) {
    double bytes = 0;
    for (const std::size_t stop = next + parameters; next < stop; ++next) {
      ready_s = std::max(ready_s, times.ready_s.at(next));
      bytes += static_cast<double>(times.bytes.at(next));
    }
    end = std::max(end, ready_s) + cost.seconds_for(bytes);
  }
  return end;
}

BucketCut best_cut(const GradientTimes& times, const TransferCost& cost, std::size_t most_buckets) {
  const std::vector<Group> groups = groups_of(times);
  if (groups.empty()) return {};
  const double earliest = earliest_end(groups, cost);
  const double wanted = earliest + kTolerance * (earliest - groups.back().ready_s);
  std::vector<Round> rounds = {next_round(groups, cost, ends_of_none(groups))};
  const std::size_t most = std::min(groups.size(), most_buckets);
  while (rounds.back().ends_s.back() > wanted && rounds.size() < most)
    rounds.push_back(next_round(groups, cost, rounds.back().ends_s));
  // The last round, or where that has come no further than the limit, maybe an earlier one.
  const auto earliest_round = std::min_element(
      rounds.begin(), rounds.end(),
      [](const Round& a, const Round& b) { return a.ends_s.back() < b.ends_s.back(); });
  rounds.erase(earliest_round + 1, rounds.end());
  return cut_of(groups, rounds);
}

}  // namespace sidestream::parallel
