// For builds without the CUDA toolkit.
#include "model/device/device_kernels.hpp"

namespace sidestream::model::device {

std::shared_ptr<DeviceKernels> make_device_kernels() { return nullptr; }

}  // namespace sidestream::model::device
