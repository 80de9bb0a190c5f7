// Sets of moments on a timeline, as sorted half-open intervals that
// do not touch. Everything in integer nanoseconds: sums are exact.
#pragma once

#include <cstdint>
#include <vector>

namespace sidestream::analysis {

struct Interval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  std::int64_t length_ns() const noexcept { return end_ns - start_ns; }
  bool operator==(const Interval&) const = default;
};

class IntervalSet {
 public:
  IntervalSet() = default;
  // The union of these, in any order; empty ones do not count.
  explicit IntervalSet(std::vector<Interval> intervals);

  const std::vector<Interval>& intervals() const noexcept { return intervals_; }
  bool empty() const noexcept { return intervals_.empty(); }
  std::int64_t length_ns() const noexcept { return empty() ? 0 : sums_.back(); }
  // Of the part inside the window.
  std::int64_t length_within_ns(Interval window) const;
  IntervalSet within(Interval window) const;

  IntervalSet operator|(const IntervalSet& other) const;
  IntervalSet operator&(const IntervalSet& other) const;
  IntervalSet operator-(const IntervalSet& other) const;

 private:
  struct Sorted {};
  IntervalSet(Sorted, std::vector<Interval> intervals);
  void sum_up();
  std::int64_t length_before_ns(std::int64_t time_ns) const;

  std::vector<Interval> intervals_;
  std::vector<std::int64_t> sums_;  // length up to and with interval i
};

}  // namespace sidestream::analysis
