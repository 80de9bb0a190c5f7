#include "parallel/device_step_update.hpp"

namespace sidestream::parallel {

void DeviceStepUpdate::settle(const UpdateRequest& request) {
  norm_.settle({.average = request.average, .max_norm = config_.grad_clip, .step = request.step});
}

// Whoever asks decides about a bad norm: it is not marked, so that later updates work.
double DeviceStepUpdate::grad_norm(double average) {
  settle({.step = 0, .average = average});
  return scalars()[0].item<double>();
}

}  // namespace sidestream::parallel
