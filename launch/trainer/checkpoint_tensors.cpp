#include "launch/trainer/checkpoint_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

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
      result.push_back({kind + "." + state.name, without_padding(tensor, state.name, config)});
    }
  }
  return result;
}

std::vector<NamedTensor> on_host(std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.cpu();
  return tensors;
}

std::vector<checkpoint::TensorSource> sources_of(const std::vector<NamedTensor>& tensors) {
  std::vector<checkpoint::TensorSource> result;
  for (const NamedTensor& named : tensors) {
    const bool narrow = named.tensor.scalar_type() == torch::kBFloat16;
    TORCH_CHECK(
        named.tensor.is_contiguous() && (narrow || named.tensor.scalar_type() == torch::kFloat32),
        named.name, ": only contiguous fp32 and bf16 tensors are stored");
    checkpoint::TensorSource source{
        .name = named.name, .dtype = narrow ? core::DType::kBFloat16 : core::DType::kFloat32};
    for (const int64_t size : named.tensor.sizes())
      source.shape.push_back(static_cast<std::uint64_t>(size));
    source.bytes = {static_cast<const std::byte*>(named.tensor.const_data_ptr()),
                    named.tensor.nbytes()};
    result.push_back(std::move(source));
  }
  return result;
}

core::DType type_of_moments(const checkpoint::TensorSet& files,
                            const std::vector<NamedTensor>& moments) {
  using checkpoint::ElementType;
  std::optional<checkpoint::TensorView> first;
  for (const NamedTensor& moment : moments) {
    const checkpoint::TensorView stored = files.at(moment.name);
    if (!first) first = stored;
    const bool known = stored.type == ElementType::kF32 || stored.type == ElementType::kBF16;
    if (known && stored.type == first->type) continue;
    throw core::CheckpointError(core::FileFault{
        .file = std::string(stored.file),
        .offset_bytes = {},
        .expected =
            fmt::format("tensor '{}' in {}", stored.name,
                        known ? fmt::format("{} as '{}' is", name_of(first->type), first->name)
                              : "F32 or BF16"),
        .found = std::string(name_of(stored.type))});
  }
  return first ? first->dtype() : core::DType::kFloat32;
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
