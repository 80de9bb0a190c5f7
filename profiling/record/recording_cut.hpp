// Puts ranges into a recording, cut at its two ends: each at most once, though one that ends while
// it is taken is found open and in a ring.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "profiling/record/recording.hpp"

namespace sidestream::record {

class Cut {
 public:
  // `seen_open`: what add_open() of the recording before gave back. All outlive the cut.
  Cut(Recording& recording, std::vector<RangeRecord> seen_open, std::vector<RangeRecord>& out)
      : recording_(recording), seen_open_(std::move(seen_open)), out_(out) {}

  // A part that lies behind the end comes with the next recording.
  void add_ended(const RangeRecord& range) {
    if (range.start_ns >= recording_.end.monotonic_ns) return;
    ended_.push_back(range);
    if (range.end_ns >= recording_.begin.monotonic_ns)
      place(range);
    else if (!is_among(seen_open_, range))
      ++recording_.dropped;  // told too late
  }

  // After all that have ended. Gives back those that were found open: `open` where they are in the
  // recording as such, not where they have ended and their thread has yet to close them.
  std::vector<RangeRecord> add_open(const std::vector<RangeRecord>& open) {
    std::vector<RangeRecord> seen;
    for (RangeRecord range : open) {
      if (range.start_ns >= recording_.end.monotonic_ns) continue;
      range.open = !is_among(ended_, range) && !has_ended_before(range);
      seen.push_back(range);
      if (!range.open) continue;
      range.end_ns = recording_.end.monotonic_ns;
      place(range);
    }
    return seen;
  }

 private:
  static bool is_among(const std::vector<RangeRecord>& ranges, const RangeRecord& range) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const RangeRecord& one) { return is_same_range(one, range); });
  }

  bool has_ended_before(const RangeRecord& range) const {
    return std::any_of(seen_open_.begin(), seen_open_.end(), [&](const RangeRecord& one) {
      return !one.open && is_same_range(one, range);
    });
  }

  void place(RangeRecord range) {
    range.start_ns = std::max(range.start_ns, recording_.begin.monotonic_ns);
    range.end_ns = std::min(range.end_ns, recording_.end.monotonic_ns);
    out_.push_back(range);
  }

  Recording& recording_;
  std::vector<RangeRecord> seen_open_;
  std::vector<RangeRecord>& out_;
  std::vector<RangeRecord> ended_;
};

}  // namespace sidestream::record
