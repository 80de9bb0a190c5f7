// Token and position embedding on a device: one kernel forward; backward a sort of the tokens and
// two kernels, which add the rows to what the tied head has left, and a sum for the positions.
#pragma once

#include <torch/types.h>

#include "model/device/launch_queue.hpp"
#include "model/operators.hpp"

namespace sidestream::model::device {

// tokens_bt int64 -> [B, T, C], NaN where a token is outside the embedding: nobody waits for the
// device to see it. The embeddings: float, bfloat16 or float16. Throws c10::Error where types,
// devices or shapes do not go together.
torch::Tensor embed(const LaunchQueuePtr& queue, const torch::Tensor& tokens_bt,
                    const Embeddings& embeddings);

}  // namespace sidestream::model::device
