#include "launch/trainer/checkpoint_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "model/hugging_face.hpp"

namespace sidestream::launch {
namespace {

torch::Tensor without_padding(const torch::Tensor& tensor, const std::string& parameter,
                              const model::ModelConfig& config) {
  if (tensor.dim() == 0) return tensor;
  return tensor.slice(0, 0, model::published_rows(config, parameter, tensor.size(0)));
}

torch::ScalarType scalar_type(core::DType dtype, const checkpoint::TensorView& stored) {
  switch (dtype) {
    case core::DType::kFloat32:
      return torch::kFloat32;
    case core::DType::kBFloat16:
      return torch::kBFloat16;
    case core::DType::kFloat16:
      return torch::kFloat16;
    default:
      throw core::CheckpointError(
          fmt::format("{}: tensor {}: expected float32, bfloat16 or float16, found {}", stored.file,
                      stored.name, core::name_of(dtype)));
  }
}

}  // namespace

std::vector<NamedTensor> weights_of(const std::vector<parallel::ParameterState>& states,
                                    const model::ModelConfig& config) {
  std::vector<NamedTensor> result;
  for (const auto& state : states)
    result.push_back({state.name, without_padding(state.master, state.name, config)});
  return result;
}

std::vector<NamedTensor> moments_of(const std::vector<parallel::ParameterState>& states,
                                    const model::ModelConfig& config) {
  std::vector<NamedTensor> result;
  for (const auto& state : states) {
    for (const auto& [kind, tensor] : state.moments) {
      result.push_back(
          {stored_name(kind, state.name), without_padding(tensor, state.name, config)});
    }
  }
  return result;
}

std::string stored_name(const std::string& kind, const std::string& parameter) {
  return kind.empty() ? parameter : kind + "." + parameter;
}

std::vector<NamedTensor> on_host(std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.cpu();
  return tensors;
}

std::vector<checkpoint::TensorSource> sources_of(const std::vector<NamedTensor>& tensors) {
  std::vector<checkpoint::TensorSource> result;
  for (const NamedTensor& named : tensors) {
    TORCH_CHECK(named.tensor.is_contiguous() && named.tensor.scalar_type() == torch::kFloat32,
                named.name, ": only contiguous fp32 tensors are stored");
    checkpoint::TensorSource source{.name = named.name};
    for (const int64_t size : named.tensor.sizes())
      source.shape.push_back(static_cast<std::uint64_t>(size));
    source.bytes = {static_cast<const std::byte*>(named.tensor.const_data_ptr()),
                    named.tensor.nbytes()};
    result.push_back(std::move(source));
  }
  return result;
}

void copy_into(const checkpoint::TensorView& stored, const NamedTensor& target) {
  std::vector<int64_t> shape(stored.shape.begin(), stored.shape.end());
  const auto expected = target.tensor.sizes();
  if (!expected.equals(shape)) {
    throw core::CheckpointError(fmt::format("{}: tensor {}: expected shape [{}], found [{}]",
                                            stored.file, stored.name, fmt::join(expected, ", "),
                                            fmt::join(shape, ", ")));
  }
  // A copy first: files written by others may hold the tensor at an odd address.
  torch::Tensor bytes = torch::empty({static_cast<int64_t>(stored.bytes.size())}, torch::kUInt8);
  std::copy(stored.bytes.begin(), stored.bytes.end(), static_cast<std::byte*>(bytes.data_ptr()));
  const torch::NoGradGuard no_grad;
  torch::Tensor destination = target.tensor;
  destination.copy_(bytes.view(scalar_type(stored.dtype(), stored)).view(shape));
}

}  // namespace sidestream::launch
