#include "parallel/device_step_update.hpp"

namespace sidestream::parallel {

void DeviceStepUpdate::settle(const UpdateRequest& request) {
  norm_.settle({.average = request.average, .max_norm = config_.grad_clip, .step = request.step});
}

double DeviceStepUpdate::grad_norm(double average) {
  settle({.average = average});
  return scalars()[0].item<double>();
}

}  // namespace sidestream::parallel
