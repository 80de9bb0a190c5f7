// Which elements of each parameter lie in the slices that one rank keeps of all buckets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parallel/bucket_plan.hpp"

namespace sidestream::parallel {

// At most one range of a parameter, since a slice is contiguous. It begins with a block of the
// parameter (kSliceBlock).
struct OwnRange {
  std::size_t first = 0;   // element of the parameter
  std::size_t count = 0;   // 0: nothing of it
  std::size_t offset = 0;  // of `first` in the rank's slices, which lie one behind another

  std::size_t end() const noexcept { return first + count; }
};

// elements[i]: of parameter i. rank: below plan.slices.
std::vector<OwnRange> own_ranges(const BucketPlan& plan, std::span<const std::size_t> elements,
                                 int rank);

// All slices of one rank together, padding included.
std::size_t own_elements(const BucketPlan& plan);

}  // namespace sidestream::parallel
