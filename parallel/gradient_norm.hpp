// The global norm of the summed gradients: a sum of squares in double for each parameter, over
// blocks that start with the parameter, added in registration order. No bit depends on layout,
// buckets, synchroniser or threads.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/gradient_space.hpp"

namespace sidestream::parallel {

class GradientNorm {
 public:
  explicit GradientNorm(const GradientSpace& gradients) : gradients_(gradients) {}

  // Reads the gradients of one bucket; they are still in the cache right after their collective.
  void add_bucket(std::size_t bucket);

  // Of everything added since the last call for each parameter. NaN and infinity pass through.
  double norm() const;

 private:
  struct Block {
    std::size_t parameter;
    std::size_t first_element;
  };

  const GradientSpace& gradients_;
  std::vector<double> squares_;  // by parameter
  std::vector<Block> blocks_;    // of the bucket at hand; kept to save allocations
  std::vector<double> block_squares_;
};

}  // namespace sidestream::parallel
