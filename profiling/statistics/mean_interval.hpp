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

// Of two values the interval is 13 times as wide as their distance: what is to be shown needs
// three.
inline constexpr std::size_t kLeastForScatter = 3;

// Student's 95 % interval of the mean. `choices`: out of how many this one was picked because of
// its values (Bonferroni's correction). Nothing of fewer than `least` values, two at least: a
// single one says nothing of scatter.
std::optional<Interval> mean_interval(std::span<const double> values, std::size_t choices = 1,
                                      std::size_t least = kLeastForScatter);

// The same of values in the order of time, where neighbours resemble each other: what slows one
// step slows the next ones too, and Student's interval alone is too narrow then. From sixteen
// values on it is never narrower than that of the means of about as many batches as a batch has
// values (nonoverlapping batch means; A. M. Law, "Simulation Modeling and Analysis", 9.5.3).
std::optional<Interval> series_interval(std::span<const double> values, std::size_t choices = 1,
                                        std::size_t least = kLeastForScatter);

}  // namespace sidestream::statistics
