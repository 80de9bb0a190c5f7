#include "profiling/analysis/interval_set.hpp"

#include <algorithm>
#include <utility>

namespace sidestream::analysis {
namespace {

bool by_start(const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; }

}  // namespace

IntervalSet::IntervalSet() {
  static const auto nothing = std::make_shared<const Kept>();
  kept_ = nothing;
}

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
  kept_ = keep(std::move(intervals));
}

IntervalSet::IntervalSet(Sorted, std::vector<Interval> intervals)
    : kept_(keep(std::move(intervals))) {}

std::shared_ptr<const IntervalSet::Kept> IntervalSet::keep(std::vector<Interval> intervals) {
  intervals.shrink_to_fit();
  auto kept = std::make_shared<Kept>(Kept{.intervals = std::move(intervals), .sums = {}});
  kept->sums.reserve((kept->intervals.size() + kStride - 1) / kStride);
  for (std::size_t i = 0; i < kept->intervals.size(); ++i) {
    if (i % kStride == 0) kept->sums.push_back(kept->length_ns);
    kept->length_ns += kept->intervals[i].length_ns();
  }
  return kept;
}

std::int64_t IntervalSet::length_before_ns(std::int64_t time_ns) const {
  const std::vector<Interval>& all = intervals();
  const auto after = std::lower_bound(all.begin(), all.end(), Interval{time_ns, time_ns}, by_start);
  if (after == all.begin()) return 0;
  const auto last = static_cast<std::size_t>(after - all.begin()) - 1;
  std::int64_t sum = kept_->sums[last / kStride];
  for (std::size_t i = last / kStride * kStride; i <= last; ++i) sum += all[i].length_ns();
  return sum - std::max<std::int64_t>(0, all[last].end_ns - time_ns);
}

std::int64_t IntervalSet::length_within_ns(Interval window) const {
  if (window.end_ns <= window.start_ns) return 0;
  return length_before_ns(window.end_ns) - length_before_ns(window.start_ns);
}

IntervalSet IntervalSet::within(Interval window) const {
  const std::vector<Interval>& all = intervals();
  auto at =
      std::upper_bound(all.begin(), all.end(), window.start_ns,
                       [](std::int64_t time, const Interval& one) { return time < one.end_ns; });
  std::vector<Interval> inside;
  for (; at != all.end() && at->start_ns < window.end_ns; ++at)
    inside.push_back(
        {std::max(at->start_ns, window.start_ns), std::min(at->end_ns, window.end_ns)});
  return {Sorted{}, std::move(inside)};
}

std::vector<Interval> IntervalSet::parts_of(Interval window, std::size_t most_intervals) const {
  const std::vector<Interval>& all = intervals();
  auto at = static_cast<std::size_t>(
      std::lower_bound(all.begin(), all.end(), Interval{window.start_ns, 0}, by_start) -
      all.begin());
  std::vector<Interval> parts;
  for (at += most_intervals; at < all.size() && all[at].start_ns < window.end_ns;
       at += most_intervals) {
    parts.push_back({window.start_ns, all[at].start_ns});
    window.start_ns = all[at].start_ns;
  }
  parts.push_back(window);
  return parts;
}

IntervalSet IntervalSet::operator|(const IntervalSet& other) const {
  if (other.empty()) return *this;
  if (empty()) return other;
  const std::vector<Interval>&a = intervals(), &b = other.intervals();
  std::vector<Interval> both(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin(), by_start);
  return IntervalSet(std::move(both));
}

IntervalSet IntervalSet::operator&(const IntervalSet& other) const {
  std::vector<Interval> common;
  auto a = intervals().begin();
  auto b = other.intervals().begin();
  while (a != intervals().end() && b != other.intervals().end()) {
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
  if (other.empty()) return *this;
  std::vector<Interval> left;
  const auto end = other.intervals().end();
  auto b = other.intervals().begin();
  for (Interval one : intervals()) {
    while (b != end && b->end_ns <= one.start_ns) ++b;
    for (auto hole = b; hole != end && hole->start_ns < one.end_ns; ++hole) {
      if (hole->start_ns > one.start_ns) left.push_back({one.start_ns, hole->start_ns});
      one.start_ns = std::max(one.start_ns, hole->end_ns);
    }
    if (one.start_ns < one.end_ns) left.push_back(one);
  }
  return {Sorted{}, std::move(left)};
}

}  // namespace sidestream::analysis
