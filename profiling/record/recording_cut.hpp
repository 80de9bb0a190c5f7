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
  // `shown_open`: by the recording before, which showed them to its end. All outlive the cut.
  Cut(Recording& recording, std::vector<RangeRecord> shown_open, std::vector<RangeRecord>& out)
      : recording_(recording), shown_open_(std::move(shown_open)), out_(out) {}

  // A part that lies behind the end comes with the next recording.
  void add_ended(const RangeRecord& range) {
    if (range.start_ns >= recording_.end.monotonic_ns) return;
    ended_.push_back(range);
    if (range.end_ns >= recording_.begin.monotonic_ns)
      place(range);
    else if (!is_among(shown_open_, range))
      ++recording_.dropped;  // told too late
  }

  // After all that have ended. Gives back those that are in the recording as open.
  std::vector<RangeRecord> add_open(const std::vector<RangeRecord>& open) {
    std::vector<RangeRecord> shown;
    for (RangeRecord range : open) {
      if (range.start_ns >= recording_.end.monotonic_ns || is_among(ended_, range)) continue;
      shown.push_back(range);
      range.end_ns = recording_.end.monotonic_ns;
      range.open = true;
      place(range);
    }
    return shown;
  }

 private:
  static bool is_among(const std::vector<RangeRecord>& ranges, const RangeRecord& range) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const RangeRecord& one) { return is_same_range(one, range); });
  }

  void place(RangeRecord range) {
    range.start_ns = std::max(range.start_ns, recording_.begin.monotonic_ns);
    range.end_ns = std::min(range.end_ns, recording_.end.monotonic_ns);
    out_.push_back(range);
  }

  Recording& recording_;
  std::vector<RangeRecord> shown_open_;
  std::vector<RangeRecord>& out_;
  std::vector<RangeRecord> ended_;
};

}  // namespace sidestream::record
