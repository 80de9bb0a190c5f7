// x weight + bias on a device, in products that add the bias themselves; the gradient of the weight
// is written where it is wanted.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"
#include "model/fused/gradient_place.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// x [..., in]; float, bfloat16 or float16, as the weights.
torch::Tensor linear(const LaunchQueuePtr& queue, const Operand& x, const LinearWeights& weights,
                     const fused::GradientPlace& weight_gradient = {});

// Of x_rc weight + bias, from the gradient of that; weight's in `memory` where it is defined.
struct LinearGradients {
  torch::Tensor weight, bias;
};
LinearGradients linear_gradients(const LaunchQueue& queue, const torch::Tensor& memory,
                                 const torch::Tensor& x_rc, const torch::Tensor& dy_rh);

// x's shape with `last` as its last dimension.
torch::Tensor shaped_like(const torch::Tensor& rows, const torch::Tensor& x, std::int64_t last);

}  // namespace sidestream::model::device
