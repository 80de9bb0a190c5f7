// Small matrix products on raw blocks, C fp32: LibTorch's brgemm (oneDNN; AMX or AVX-512 for bf16,
// AVX-512 for fp32).
//
// Blocks aligned to 64 bytes run three times as fast as others on AMX: scratch is aligned, tensors
// are.
#pragma once

#include <cstdint>

#include <torch/torch.h>

#include "core/base/dtype.hpp"

namespace sidestream::model::fused {

enum class Accumulate { kNo, kYes };

template <typename T>
struct BlockProduct {
  std::int64_t m = 0, n = 0, k = 0;  // k even for bf16
  const T* a = nullptr;              // [m, k]
  std::int64_t a_stride = 0;
  const T* b = nullptr;  // a panel of kernels/pack.hpp, b_stride its width
  std::int64_t b_stride = 0;
  float* c = nullptr;  // [m, n]
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::kNo;
};

void multiply(const BlockProduct<float>& product);
void multiply(const BlockProduct<core::BFloat16>& product);

// After the last product of a task on this thread: gives the tile registers back.
template <typename T>
void release_products();

// Whether this processor and this LibTorch can do it; tried once with a small product.
bool products_supported(at::ScalarType dtype);

// The element type of our kernels for a tensor's: calls body with a null pointer of it.
template <typename Body>
void with_element_type(at::ScalarType dtype, Body&& body) {
  if (dtype == at::kFloat) return body(static_cast<float*>(nullptr));
  TORCH_INTERNAL_ASSERT(dtype == at::kBFloat16);
  return body(static_cast<core::BFloat16*>(nullptr));
}

template <typename T>
T* data_of(const torch::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

// Aligned scratch that is not initialised.
template <typename T>
torch::Tensor scratch(std::int64_t elements) {
  return at::empty({elements},
                   at::TensorOptions(std::is_same_v<T, float> ? at::kFloat : at::kBFloat16));
}

}  // namespace sidestream::model::fused
