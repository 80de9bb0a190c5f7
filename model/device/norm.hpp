// Layer norm on a device, alone or after a residual addition: one kernel forward; backward one for
// the rows and one for the sums of weight and bias.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// x [..., C], C at most kWidestNorm; float, bfloat16 or float16, as the weights. The gradient that
// arrives for the residual is added to the norm's in the same pass.
torch::Tensor norm(const LaunchQueuePtr& queue, const torch::Tensor& x, const NormWeights& weights);
NormedResidual add_norm(const LaunchQueuePtr& queue, const torch::Tensor& residual,
                        const torch::Tensor& branch, const NormWeights& weights);

}  // namespace sidestream::model::device
