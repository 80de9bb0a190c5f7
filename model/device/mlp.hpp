// linear, GELU, linear on a device. Kept for the backward are the input and what goes into GELU and
// comes out of it, or less; there one kernel computes the gradient, the sums for the bias, and the
// activation where it was not kept.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"
#include "model/fused/mlp.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// x [..., C]; weights [C, H] and [H, C]; float, bfloat16 or float16.
torch::Tensor mlp(const LaunchQueuePtr& queue, const Operand& x, const LinearWeights& in,
                  const LinearWeights& out, const fused::MlpOptions& options = {});

}  // namespace sidestream::model::device
