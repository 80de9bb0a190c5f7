// Small matrix products on raw blocks, C fp32, by the fastest of what the processor has: LibTorch's
// brgemm (oneDNN) for fp32 with AVX-512 and for bf16 where units for it are faster than those for
// fp32, as AMX; elsewhere our own loops, because it has none or slower ones.
//
// Blocks aligned to 64 bytes run three times as fast as others on AMX: scratch is aligned, tensors
// are.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include "model/kernels/block_product.hpp"

namespace sidestream::model::fused {

using kernels::Accumulate;
using kernels::BlockProduct;

void multiply(const BlockProduct<float>& product);
void multiply(const BlockProduct<core::BFloat16>& product);

// After the last product of a task on this thread: gives the tile registers back.
template <typename T>
void release_products();

// Whether bf16 is multiplied in units of its own, faster than fp32.
bool has_bf16_units();

// Whether whole products of fp32 are faster in our loops than by LibTorch's mm: on AMD's processors
// its MKL takes kernels for AVX2, which reach half of what units of 512 bits do (Zen 5: 108 GFLOP/s
// a core, blocks 265), and less than AVX-512 even where its units are of 256 (Zen 4). With AVX2
// alone they reach 83 to 92 of 101 GFLOP/s (Zen 3), and strips 85 to 94.
bool blocks_beat_mm();

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
