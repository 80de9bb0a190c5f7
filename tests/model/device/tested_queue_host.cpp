#include "tests/model/device/host_block.hpp"
#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {

LaunchQueuePtr tested_queue() {
  auto queue = c10::make_intrusive<LaunchQueue>();
  queue->kernels = std::make_shared<HostKernels>();
  queue->device = torch::kCPU;
  queue->current_stream = [](const torch::Device&) { return nullptr; };
  return queue;
}

}  // namespace sidestream::model::device
