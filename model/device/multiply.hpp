// Products of a device as its queue has them: its own where they are used and take the matrices,
// LibTorch's elsewhere.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// left right.
torch::Tensor multiply(const LaunchQueue& queue, const torch::Tensor& left,
                       const torch::Tensor& right);

// The same in `out`, row-major, of the dtype of both.
void multiply_into(const LaunchQueue& queue, const torch::Tensor& out, const torch::Tensor& left,
                   const torch::Tensor& right);

// The same in `memory` where it is defined.
torch::Tensor product_into(const LaunchQueue& queue, torch::Tensor memory,
                           const torch::Tensor& left, const torch::Tensor& right);

// The same, and sum += left right, in products of the queue's own alone, which also leave or add to
// float32. False, and nothing done: it has none for such matrices.
bool own_product(const LaunchQueue& queue, const torch::Tensor& left, const torch::Tensor& right,
                 const torch::Tensor& out);
bool own_product_added(const LaunchQueue& queue, const torch::Tensor& left,
                       const torch::Tensor& right, const torch::Tensor& sum);

// x weight + bias.
torch::Tensor multiply_with_bias(const LaunchQueue& queue, const torch::Tensor& x_rc,
                                 const LinearWeights& weights);

}  // namespace sidestream::model::device
