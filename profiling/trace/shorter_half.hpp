// Clock samples that are worth going by.
#pragma once

#include <algorithm>
#include <vector>

namespace sidestream::trace {

// The longer half of the round trips was held up somewhere: what they compare is less sure. Sorts.
template <typename Sample>
void keep_shorter_half(std::vector<Sample>& samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.round_trip_ns < b.round_trip_ns; });
  samples.resize((samples.size() + 1) / 2);
}

}  // namespace sidestream::trace
