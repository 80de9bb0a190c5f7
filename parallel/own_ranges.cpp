#include "parallel/own_ranges.hpp"

#include <algorithm>

namespace sidestream::parallel {

std::vector<OwnRange> own_ranges(const BucketPlan& plan, std::span<const std::size_t> elements,
                                 int rank) {
  std::vector<OwnRange> ranges(elements.size());
  std::size_t before = 0;  // elements of the rank's slices of earlier buckets
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const std::size_t slice = plan.slice_elements(b);
    const std::size_t begin =
        plan.buckets[b].offset_elements + static_cast<std::size_t>(rank) * slice;
    for (const std::size_t i : plan.buckets[b].parameters) {
      const std::size_t first = std::max(begin, plan.offsets[i]);
      const std::size_t end = std::min(begin + slice, plan.offsets[i] + elements[i]);
      if (first >= end) continue;
      ranges[i] = {
          .first = first - plan.offsets[i], .count = end - first, .offset = before + first - begin};
    }
    before += slice;
  }
  return ranges;
}

std::size_t own_elements(const BucketPlan& plan) {
  return plan.total_elements / static_cast<std::size_t>(plan.slices);
}

}  // namespace sidestream::parallel
