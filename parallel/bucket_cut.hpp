// Where to cut the gradients into buckets, from what a backward and its collectives were seen to
// take: a pure function, so that all ranks find the same cut.
//
// The model: gradient i of the order is ready at ready_s[i]; buckets are contiguous in that order,
// and their collectives run one after another; one of B bytes takes latency + B / bandwidth. What
// counts is when the last one ends. The earliest end is found exactly, by dynamic programming over
// the last cut; among the cuts that end hardly later, one with the fewest buckets is taken.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sidestream::parallel {

struct TransferCost {
  double latency_s = 0;
  double s_per_byte = 0;
  std::size_t step_bytes = 1;  // a bucket that is no multiple of it is padded to one

  double seconds_for(double bytes) const;
};

struct TransferSample {
  std::size_t bytes = 0;
  double seconds = 0;
};

// The line through the samples by the median of the slopes between them (Theil and Sen), which a
// few disturbed ones do not move, each weighted by the bytes between them (Jaeckel 1972): buckets
// of nearly one size have slopes of noise. Neither latency nor time per byte is negative. Throws
// Error for fewer than two sizes.
TransferCost fit_transfer_cost(std::span<const TransferSample> samples);

// Gradients in the order of their buckets.
struct GradientTimes {
  std::vector<double> ready_s;     // since the last micro-step began
  std::vector<std::size_t> bytes;  // padded, as they lie in a bucket
};

// Parameters in each bucket.
using BucketCut = std::vector<std::size_t>;

// When the last collective ends, since the last micro-step began.
double end_of_collectives(const GradientTimes& times, const TransferCost& cost,
                          const BucketCut& cut);

// Of at most so many buckets, and of 1 at least.
BucketCut best_cut(const GradientTimes& times, const TransferCost& cost, std::size_t most_buckets);

}  // namespace sidestream::parallel
