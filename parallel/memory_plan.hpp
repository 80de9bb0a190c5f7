// What data-parallel training of a model will take, from names and shapes alone: nothing is
// allocated, no LibTorch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/bucket_plan.hpp"
#include "parallel/config.hpp"

namespace sidestream::parallel {

struct ParameterShape {
  std::string name;
  std::vector<std::int64_t> sizes;

  std::size_t elements() const;
};

// Bytes on each rank, its part of what the ranks of a node share; padding of the flat buffers
// included.
struct MemoryPlan {
  std::size_t parameter_bytes = 0;
  std::size_t master_bytes = 0;  // 0 when the parameters are fp32 themselves
  std::size_t gradient_bytes = 0;
  // Beside them: autograd's own, which micro-steps are added to where they are the wider type.
  std::size_t unrounded_gradient_bytes = 0;
  std::size_t moment_bytes = 0;
  // Of a GPU's host, pinned, in place of the two kinds of state that are then 0 here.
  std::size_t host_state_bytes = 0;
  std::size_t moving_host_bytes = 0;  // beside it: one state twice, while slices move
  std::size_t stream_bytes = 0;       // the two buffers on the GPU through which updates stream it
  // Before there are activations. Of state in slices: the module's own fp32 weights beside the flat
  // ones and the slices of master weights; or, between two steps, what training takes, and once
  // more the slices of one state, which move with the buckets. Of state in the host's memory: the
  // module's own weights and the flat ones. 0: never more than in training.
  std::size_t start_bytes = 0;
  std::size_t padding_bytes = 0;  // of them in training, so that slices are equal
  bool shares_state = false;      // one copy of all but the gradients for all ranks
  bool shards_state = false;      // master weights and moments of this rank's slices
  BucketPlan buckets = {};        // before the first step; the order is observed in it

  std::size_t total_bytes() const {
    return parameter_bytes + master_bytes + own_gradient_bytes() + moment_bytes + stream_bytes;
  }
  std::size_t own_gradient_bytes() const { return gradient_bytes + unrounded_gradient_bytes; }
  std::size_t peak_bytes() const { return std::max(total_bytes(), start_bytes); }
};

// parameters: each tensor once, in registration order.
MemoryPlan plan_memory(const std::vector<ParameterShape>& parameters,
                       const DataParallelConfig& config, int ranks);

// Flat buffers that the optimizer keeps beside the weights: 2, 1 or 0.
int moments_per_parameter(const OptimizerConfig& config);

// Bytes of one of them: in the layout of fp32 weights, whatever its type, so that an element has
// one place in all.
std::size_t flat_moment_bytes(const std::vector<std::size_t>& elements,
                              const OptimizerConfig& config);

// "bucket 0: 3 parameters, 1.00 MiB: lm_head.weight .. h.11.mlp.bias", one line a bucket.
std::vector<std::string> describe(const BucketPlan& plan, const std::vector<std::string>& names,
                                  core::DType dtype);

}  // namespace sidestream::parallel
