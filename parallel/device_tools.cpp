#include "parallel/device_tools.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace sidestream::parallel {

DeviceTools DeviceTools::of(const torch::Device& device) {
  if (device.is_cpu()) return {};
  return {.kernels = optim::make_device_kernels(), .current_stream = [device] {
            const c10::impl::VirtualGuardImpl guard(device.type());
            return comm::Stream(guard.getStream(device).native_handle());
          }};
}

}  // namespace sidestream::parallel
