// Element types of this project and of LibTorch, and typed views of contiguous host tensors for the
// loops of core/optim.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <torch/types.h>

#include "core/base/dtype.hpp"
#include "core/base/error.hpp"
#include "core/base/float16.hpp"

namespace sidestream::parallel {

// Throws Error for a type that LibTorch does not have.
torch::ScalarType scalar_type_of(core::DType dtype);

// A flat tensor in memory that is not LibTorch's, which it holds a pointer to; `elements` of them
// fit.
torch::Tensor tensor_in(const std::shared_ptr<std::byte>& memory, std::size_t elements,
                        torch::ScalarType type, const torch::Device& device);

// Values of the same shape into a tensor. Elements that share memory (expand()) cannot be written
// one by one: the first of each stands for all.
void assign(torch::Tensor values, torch::Tensor tensor);

// The elements of a contiguous host tensor; Element must match its type. Throws c10::Error
// otherwise.
std::span<float> floats_of(const torch::Tensor& tensor);
std::span<core::BFloat16> bfloats_of(const torch::Tensor& tensor);
std::span<core::Float16> halves_of(const torch::Tensor& tensor);

template <typename Element>
std::span<Element> elements_of(const torch::Tensor& tensor);
template <>
inline std::span<float> elements_of(const torch::Tensor& tensor) {
  return floats_of(tensor);
}
template <>
inline std::span<core::BFloat16> elements_of(const torch::Tensor& tensor) {
  return bfloats_of(tensor);
}

// Calls work(elements) with those of an fp32 or bf16 tensor. Throws Error for another type.
template <typename Work>
void with_elements(const torch::Tensor& tensor, const Work& work) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32:
      return work(floats_of(tensor));
    case torch::kBFloat16:
      return work(bfloats_of(tensor));
    default:
      throw core::Error("The fused optimizer knows tensors in float32 and bfloat16 only.");
  }
}

// The same for gradients, which may be in fp16 too.
template <typename Work>
void with_gradients(const torch::Tensor& tensor, const Work& work) {
  if (tensor.scalar_type() == torch::kFloat16) return work(halves_of(tensor));
  with_elements(tensor, work);
}

// For the copy of master weights in 16 bits.
template <typename Work>
void with_low_precision(const torch::Tensor& tensor, const Work& work) {
  if (tensor.scalar_type() == torch::kFloat16) return work(halves_of(tensor));
  work(bfloats_of(tensor));
}

}  // namespace sidestream::parallel
