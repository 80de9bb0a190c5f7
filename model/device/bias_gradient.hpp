// The gradient of a bias on a device: sums over rows, in an order that is the same in every run.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"

namespace sidestream::model::device {

// grad_rc: of what the bias was added to, contiguous; float, bfloat16 or float16. [C], of its type.
// Those that LaunchQueue::sums has, where it has them.
torch::Tensor bias_gradient(const LaunchQueue& queue, const torch::Tensor& grad_rc);

// The second stage: partial [parts, C], fp32, to a tensor like `like`.
torch::Tensor sum_of_parts(const LaunchQueue& queue, const torch::Tensor& partial,
                           const torch::Tensor& like);

}  // namespace sidestream::model::device
