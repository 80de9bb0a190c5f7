// Random tensors, and how near they are to what an oracle in double says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <torch/types.h>

#include "tests/model/device/tested_queue.hpp"
#include "tests/model/operator_outcome.hpp"

namespace sidestream::model::device {

// On the tested device, drawn on the processor: the same numbers on both.
inline torch::Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 1.0) {
  return (torch::randn(shape, at::kDouble) * scale).to(tested_device(), dtype);
}

// The same numbers one element past a multiple of 16 bytes.
inline torch::Tensor shifted(const torch::Tensor& tensor) {
  return at::empty({tensor.numel() + 1}, tensor.options())
      .narrow(0, 1, tensor.numel())
      .view(tensor.sizes())
      .copy_(tensor);
}

// fp32: near double. bf16 and fp16: inputs are exact in double, so that only the result is rounded,
// by 2^-8 and 2^-11 at most.
inline double tolerance_of(at::ScalarType dtype) {
  if (dtype == at::kHalf) return 4.9e-4;
  return dtype == at::kFloat ? 3e-6 : 3.92e-3;
}

inline void expect_near(const torch::Tensor& found, const torch::Tensor& expected,
                        const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  EXPECT_LT(relative_error(found, expected), tolerance_of(found.scalar_type())) << what;
}

inline const auto kDtypes = {at::kFloat, at::kBFloat16, at::kHalf};

}  // namespace sidestream::model::device
