// Element types of this project and of LibTorch, and typed views of contiguous host tensors for the
// loops of core/optim.
#pragma once

#include <cstddef>
#include <span>

#include <torch/torch.h>

#include "core/base/dtype.hpp"

namespace sidestream::parallel {

// Throws Error for a type that LibTorch does not have.
torch::ScalarType scalar_type_of(core::DType dtype);

// The elements of a contiguous host tensor; Element must match its type. Throws c10::Error
// otherwise.
std::span<float> floats_of(const torch::Tensor& tensor);
std::span<core::BFloat16> bfloats_of(const torch::Tensor& tensor);

}  // namespace sidestream::parallel
