#pragma once

#include "model/device/launch_queue.hpp"

namespace sidestream::model::device {

// Causal self-attention by queue->attention, which has to take it; as Operators::attention.
torch::Tensor attention(const LaunchQueuePtr& queue, const torch::Tensor& qkv_bt3c,
                        std::int64_t heads);

}  // namespace sidestream::model::device
