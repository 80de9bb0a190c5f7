#include "model/device/launch_queue.hpp"

#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace sidestream::model::device {

LaunchQueuePtr make_launch_queue() {
  std::shared_ptr<DeviceKernels> kernels = make_device_kernels();
  if (!kernels) return {};
  auto queue = c10::make_intrusive<LaunchQueue>();
  queue->kernels = std::move(kernels);
  queue->current_stream = [](const torch::Device& device) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    return guard.getStream(device).native_handle();
  };
  return queue;
}

}  // namespace sidestream::model::device
