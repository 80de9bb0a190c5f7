#include "parallel/device_tools.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "comm/cuda/stream_copies.hpp"
#include "core/base/error.hpp"

namespace sidestream::parallel {

std::shared_ptr<core::CopyEngine> DeviceTools::copies_of_state(
    const OptimizerConfig& config) const {
  if (config.state_residence == StateResidence::kDevice) return nullptr;
  if (make_copies) return make_copies();
  throw core::ConfigError(
      "--offload optimizer: expected parameters on a GPU, found them on the host.");
}

DeviceTools DeviceTools::of(const torch::Device& device) {
  if (device.is_cpu()) return {.place = device};
  const CurrentStream current_stream = [device] {
    const c10::impl::VirtualGuardImpl guard(device.type());
    return comm::device_stream(guard.getStream(device).native_handle());
  };
  return {.kernels = optim::make_device_kernels(),
          .current_stream = current_stream,
          .make_copies =
              [current_stream] {
                return comm::cuda::make_stream_copies(comm::cuda::make_driver(), current_stream,
                                                      "--offload optimizer");
              },
          .place = device};
}

}  // namespace sidestream::parallel
