// The mean of repeated measurements and how sure it is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace sidestream::statistics {

struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

// Student's 95 % interval of the mean. `choices`: out of how many this one was picked because of
// its values (Bonferroni's correction). Nothing for a single value, which says nothing of scatter;
// of two the interval is 13 times as wide as their distance.
std::optional<Interval> mean_interval(std::span<const double> values, std::size_t choices = 1);

}  // namespace sidestream::statistics
