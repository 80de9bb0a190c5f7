// Device operators with their autograd against plain operators: fp32 against plain in double, bf16
// against plain in double on the same rounded numbers.
#pragma once

#include "model/device/device_operators.hpp"
#include "tests/model/device/near_tensors.hpp"

namespace sidestream::model::device {

// Shapes as doubles on the processor.
inline void compare(const Operation& operation, const Tensors& inputs,
                    const LaunchQueuePtr& queue = tested_queue()) {
  for (const at::ScalarType dtype : kDtypes) {
    SCOPED_TRACE(c10::toString(dtype));
    Tensors narrow, exact;
    for (const torch::Tensor& input : inputs) {
      narrow.push_back(input.to(tested_device(), dtype));
      exact.push_back(narrow.back().to(at::kDouble));
    }
    DeviceOperators device(queue);
    PlainOperators plain;
    expect_near(run(device, operation, narrow), run(plain, operation, exact),
                dtype == at::kFloat ? 5e-6 : 1.2e-2);
  }
}

inline torch::Tensor random(at::IntArrayRef shape, double scale = 1.0) {
  return torch::randn(shape, at::kDouble) * scale;
}

inline torch::Tensor ids(std::int64_t below, at::IntArrayRef shape) {
  return torch::randint(below, shape, torch::kLong).to(tested_device());
}

}  // namespace sidestream::model::device
