// For builds without the CUDA toolkit.
#include "core/base/error.hpp"
#include "core/optim/device_kernels.hpp"

namespace sidestream::optim {

std::shared_ptr<DeviceKernels> make_device_kernels() {
  throw core::ConfigError("this build was made without CUDA: there are no kernels for a GPU");
}

}  // namespace sidestream::optim
