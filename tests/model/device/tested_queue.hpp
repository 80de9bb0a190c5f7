// What the tests beside this file run on: the kernels on a GPU, or their arithmetic thread after
// thread on the processor. They are compiled twice, and say the same of both.
#pragma once

#include "model/device/launch_queue.hpp"

namespace sidestream::model::device {

LaunchQueuePtr tested_queue();

// And products: cublasLt's fastest on a GPU, LibTorch's operators on the processor.
LaunchQueuePtr tested_queue_with_products();

// And attention of packed operands: cuDNN's on a GPU, LibTorch's operators on the processor.
LaunchQueuePtr tested_queue_with_packed_attention();

inline torch::Device tested_device() { return torch::Device(tested_queue()->device); }

}  // namespace sidestream::model::device
