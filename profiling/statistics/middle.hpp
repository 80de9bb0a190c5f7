// The middle of repeated measurements with their scatter, and how sure a difference of two middles
// is. Medians: one step that stalls says nothing about the others.
#pragma once

#include <cstddef>
#include <vector>

namespace sidestream::statistics {

struct Middle {
  double median = 0;
  double deviation = 0;   // median distance from the median
  std::size_t count = 0;  // 0: not known
};

Middle middle_of(const std::vector<double>& values);

// Two standard errors of the difference of the medians, if both scatter normally and as much as the
// one that scatters more. A count that is not known adds nothing.
double difference_uncertainty(const Middle& one, const Middle& other);

}  // namespace sidestream::statistics
