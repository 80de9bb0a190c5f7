// Values in the order of time, cut into about as many batches as a batch has values: neighbours
// resemble each other, batches hardly do.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace sidestream::statistics {

constexpr std::size_t kLeastForBatches = 16;  // four of four

// What `of` makes of each batch. The oldest values that fill no batch are in none. At least one
// value.
template <typename Of>
std::vector<double> of_batches(std::span<const double> values, Of of) {
  const auto batches = static_cast<std::size_t>(std::sqrt(static_cast<double>(values.size())));
  const std::size_t size = values.size() / batches;
  std::vector<double> results;
  for (std::size_t at = values.size() - batches * size; at < values.size(); at += size)
    results.push_back(of(values.subspan(at, size)));
  return results;
}

}  // namespace sidestream::statistics
