// Flat storage of the gradients, in memory of the communicator, laid out by a bucket plan.
//
// The memory belongs to the communicator, which must outlive this. Padding between parameters is
// always zero.
#pragma once

#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "comm/communicator.hpp"
#include "core/base/dtype.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/parameter_list.hpp"

namespace sidestream::parallel {

class GradientSpace {
 public:
  // Collective. Throws MemoryError.
  GradientSpace(comm::Communicator& communicator, const std::vector<Parameter>& parameters,
                core::DType dtype, BucketPlan plan);
  GradientSpace(const GradientSpace&) = delete;
  GradientSpace& operator=(const GradientSpace&) = delete;

  core::DType dtype() const noexcept { return dtype_; }
  // Of all whose gradients the communicator sums: for the options of its collectives.
  int model() const noexcept { return model_; }
  const BucketPlan& plan() const noexcept { return plan_; }

  // Another layout of the same parameters. The gradients themselves are lost.
  void adopt(BucketPlan plan);

  // Of the parameter's shape; another tensor after adopt().
  const torch::Tensor& view(std::size_t parameter) const { return views_.at(parameter); }

  void* bucket_data(std::size_t bucket) const;

  // All of the memory, for who needs some between two steps: adopt() clears it.
  const torch::Tensor& scratch() const noexcept { return flat_; }

 private:
  void make_views();
  void clear_padding();

  std::vector<std::vector<std::int64_t>> shapes_;
  core::DType dtype_;
  int model_;
  BucketPlan plan_;
  comm::Allocation memory_;
  std::size_t capacity_elements_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> views_;
};

}  // namespace sidestream::parallel
