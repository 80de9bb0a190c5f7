// The global norm of the summed gradients: a sum of squares in double for each parameter, over
// blocks that start with the parameter, added in registration order. No bit depends on layout,
// buckets, synchroniser or threads, nor on slices: they cut no block, and ranks exchange the
// squares of their blocks.
#pragma once

#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "parallel/gradient_space.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

class GradientNorm {
 public:
  GradientNorm(const ParameterSpace& parameters, const GradientSpace& gradients);

  // Reads the gradients of one bucket, or of this rank's slice of it; they are still in the cache
  // right after their collective.
  void add_bucket(std::size_t bucket);

  // Every bucket has been added. Collective where the parameters are sharded: blocks, throws
  // CollectiveError, PeerError.
  void complete();

  // Of the last complete(). NaN and infinity pass through.
  double norm() const;
  // By parameter.
  const std::vector<double>& parameter_squares() const noexcept { return squares_; }

 private:
  struct Block {
    std::size_t parameter;
    std::size_t first_element;
  };
  void list_blocks(std::size_t parameter);

  const ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  std::vector<std::size_t> first_block_;  // of each parameter in registration order, and the end
  torch::Tensor block_squares_;           // doubles; of the blocks of others zero
  std::vector<double> squares_;           // by parameter
  std::vector<Block> blocks_;             // of the bucket at hand; kept to save allocations
};

}  // namespace sidestream::parallel
