#include "parallel/tensor_types.hpp"

#include <ATen/MemoryOverlap.h>

#include "core/base/error.hpp"

namespace sidestream::parallel {

static_assert(sizeof(core::BFloat16) == sizeof(c10::BFloat16));
static_assert(sizeof(core::Float16) == sizeof(c10::Half));

torch::ScalarType scalar_type_of(core::DType dtype) {
  switch (dtype) {
    case core::DType::kFloat32:
      return torch::kFloat32;
    case core::DType::kBFloat16:
      return torch::kBFloat16;
    case core::DType::kFloat16:
      return torch::kFloat16;
    case core::DType::kInt64:
      return torch::kInt64;
    case core::DType::kInt32:
      return torch::kInt32;
    case core::DType::kUInt16:
      return torch::kUInt16;
    case core::DType::kUInt8:
      return torch::kUInt8;
    case core::DType::kFloat64:
      return torch::kFloat64;
  }
  throw core::Error("A tensor type was asked for that LibTorch does not have.");
}

torch::Tensor tensor_in(const std::shared_ptr<std::byte>& memory, std::size_t elements,
                        torch::ScalarType type, const torch::Device& device) {
  return at::for_blob(memory.get(), {static_cast<std::int64_t>(elements)})
      .deleter([memory](void*) {})
      .options(torch::dtype(type).device(device))
      .target_device(device)  // said, not asked of the driver: it may be memory of NCCL
      .make_tensor();
}

void assign(torch::Tensor values, torch::Tensor tensor) {
  const torch::NoGradGuard no_grad;
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
      if (tensor.stride(dim) != 0) continue;
      values = values.narrow(dim, 0, 1);
      tensor = tensor.narrow(dim, 0, 1);
    }
  }
  tensor.copy_(values);
}

std::span<float> floats_of(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu(), "expected a contiguous host tensor");
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::span<core::BFloat16> bfloats_of(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu(), "expected a contiguous host tensor");
  return {reinterpret_cast<core::BFloat16*>(tensor.mutable_data_ptr<at::BFloat16>()),
          static_cast<std::size_t>(tensor.numel())};
}

std::span<core::Float16> halves_of(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu(), "expected a contiguous host tensor");
  return {reinterpret_cast<core::Float16*>(tensor.mutable_data_ptr<at::Half>()),
          static_cast<std::size_t>(tensor.numel())};
}

}  // namespace sidestream::parallel
