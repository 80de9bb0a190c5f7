#include "profiling/analysis/interval_set.hpp"

#include <algorithm>
#include <utility>

namespace sidestream::analysis {
namespace {

bool by_start(const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; }

}  // namespace

IntervalSet::IntervalSet(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& one) { return one.end_ns <= one.start_ns; });
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_start))
    std::sort(intervals.begin(), intervals.end(), by_start);
  std::size_t used = 0;
  for (const Interval& one : intervals) {
    if (used > 0 && one.start_ns <= intervals[used - 1].end_ns) {
      intervals[used - 1].end_ns = std::max(intervals[used - 1].end_ns, one.end_ns);
    } else {
      intervals[used++] = one;
    }
  }
  intervals.resize(used);
  intervals_ = std::move(intervals);
  sum_up();
}

IntervalSet::IntervalSet(Sorted, std::vector<Interval> intervals)
    : intervals_(std::move(intervals)) {
  sum_up();
}

void IntervalSet::sum_up() {
  sums_.reserve(intervals_.size());
  std::int64_t sum = 0;
  for (const Interval& one : intervals_) sums_.push_back(sum += one.length_ns());
}

std::int64_t IntervalSet::length_before_ns(std::int64_t time_ns) const {
  const auto after =
      std::lower_bound(intervals_.begin(), intervals_.end(), Interval{time_ns, time_ns}, by_start);
  if (after == intervals_.begin()) return 0;
  const auto last = static_cast<std::size_t>(after - intervals_.begin()) - 1;
  const std::int64_t beyond = std::max<std::int64_t>(0, intervals_[last].end_ns - time_ns);
  return sums_[last] - beyond;
}

std::int64_t IntervalSet::length_within_ns(Interval window) const {
  if (window.end_ns <= window.start_ns) return 0;
  return length_before_ns(window.end_ns) - length_before_ns(window.start_ns);
}

IntervalSet IntervalSet::within(Interval window) const {
  auto at =
      std::upper_bound(intervals_.begin(), intervals_.end(), window.start_ns,
                       [](std::int64_t time, const Interval& one) { return time < one.end_ns; });
  std::vector<Interval> inside;
  for (; at != intervals_.end() && at->start_ns < window.end_ns; ++at)
    inside.push_back(
        {std::max(at->start_ns, window.start_ns), std::min(at->end_ns, window.end_ns)});
  return {Sorted{}, std::move(inside)};
}

IntervalSet IntervalSet::operator|(const IntervalSet& other) const {
  std::vector<Interval> both(intervals_.size() + other.intervals_.size());
  std::merge(intervals_.begin(), intervals_.end(), other.intervals_.begin(), other.intervals_.end(),
             both.begin(), by_start);
  return IntervalSet(std::move(both));
}

IntervalSet IntervalSet::operator&(const IntervalSet& other) const {
  std::vector<Interval> common;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() && b != other.intervals_.end()) {
    const Interval part{std::max(a->start_ns, b->start_ns), std::min(a->end_ns, b->end_ns)};
    if (part.start_ns < part.end_ns) common.push_back(part);
    if (a->end_ns < b->end_ns)
      ++a;
    else
      ++b;
  }
  return {Sorted{}, std::move(common)};
}

IntervalSet IntervalSet::operator-(const IntervalSet& other) const {
  std::vector<Interval> left;
  auto b = other.intervals_.begin();
  for (Interval one : intervals_) {
    while (b != other.intervals_.end() && b->end_ns <= one.start_ns) ++b;
    for (auto hole = b; hole != other.intervals_.end() && hole->start_ns < one.end_ns; ++hole) {
      if (hole->start_ns > one.start_ns) left.push_back({one.start_ns, hole->start_ns});
      one.start_ns = std::max(one.start_ns, hole->end_ns);
    }
    if (one.start_ns < one.end_ns) left.push_back(one);
  }
  return {Sorted{}, std::move(left)};
}

}  // namespace sidestream::analysis
