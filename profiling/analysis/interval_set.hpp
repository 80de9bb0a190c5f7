// Sets of moments on a timeline, as sorted half-open intervals that
// do not touch. Everything in integer nanoseconds: sums are exact.
// A set never changes, so that copies of it share their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  IntervalSet();
  IntervalSet(const IntervalSet&) = default;  // moved from, a set is what it was
  IntervalSet& operator=(const IntervalSet&) = default;
  // The union of these, in any order; empty ones do not count.
  explicit IntervalSet(std::vector<Interval> intervals);

  const std::vector<Interval>& intervals() const noexcept { return kept_->intervals; }
  bool empty() const noexcept { return intervals().empty(); }
  std::int64_t length_ns() const noexcept { return kept_->length_ns; }
  // Of the part inside the window.
  std::int64_t length_within_ns(Interval window) const;
  // Whether the nanosecond that begins at this moment is inside.
  bool contains(std::int64_t time_ns) const { return length_within_ns({time_ns, time_ns + 1}) > 0; }
  IntervalSet within(Interval window) const;
  // The window in parts, one after the other, that have about as many intervals each: what is made
  // of one part at a time needs little memory.
  std::vector<Interval> parts_of(Interval window, std::size_t most_intervals) const;

  IntervalSet operator|(const IntervalSet& other) const;
  IntervalSet operator&(const IntervalSet& other) const;
  IntervalSet operator-(const IntervalSet& other) const;

 private:
  struct Sorted {};
  struct Kept {
    std::vector<Interval> intervals;
    std::vector<std::int64_t> sums;  // length before every kStride-th interval
    std::int64_t length_ns = 0;
  };
  static constexpr std::size_t kStride = 16;

  IntervalSet(Sorted, std::vector<Interval> intervals);
  static std::shared_ptr<const Kept> keep(std::vector<Interval> intervals);
  std::int64_t length_before_ns(std::int64_t time_ns) const;

  std::shared_ptr<const Kept> kept_;
};

}  // namespace sidestream::analysis
