#include "launch/trainer/checkpoint_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "core/base/error.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::launch {
namespace {

torch::Tensor without_padding(const torch::Tensor& tensor, const std::string& parameter,
                              const CheckpointedModel& model) {
  if (tensor.dim() == 0) return tensor;
  return tensor.slice(0, 0, model.stored_rows(parameter, tensor.size(0)));
}

// What LibTorch converts to that of the target when it copies.
torch::ScalarType type_to_copy(const checkpoint::TensorView& stored, const NamedTensor& target) {
  const auto is_computed_with = [](torch::ScalarType type) {
    return type == torch::kFloat32 || type == torch::kBFloat16 || type == torch::kFloat16;
  };
  const torch::ScalarType found = parallel::scalar_type_of(stored.dtype());
  const torch::ScalarType wanted = target.tensor.scalar_type();
  if (found == wanted || (is_computed_with(found) && is_computed_with(wanted))) return found;
  throw core::CheckpointError(
      fmt::format("{}: tensor {}: expected {}, found {}", stored.file, stored.name,
                  is_computed_with(wanted) ? "float32, bfloat16 or float16"
                                           : core::name_of(stored_type_of(target)),
                  core::name_of(stored.dtype())));
}

}  // namespace

core::DType stored_type_of(const NamedTensor& named) {
  using core::DType;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64,
                            DType::kInt64, DType::kInt32, DType::kUInt16, DType::kUInt8}) {
    if (parallel::scalar_type_of(dtype) == named.tensor.scalar_type()) return dtype;
  }
  throw core::CheckpointError(fmt::format(
      "tensor {}: expected float32, bfloat16, float16, float64, int64, int32, uint16, uint8 or "
      "bool, which checkpoints have, found {}",
      named.name, c10::toString(named.tensor.scalar_type())));
}

std::vector<NamedTensor> weights_of(const std::vector<parallel::ParameterState>& states,
                                    const CheckpointedModel& model) {
  std::vector<NamedTensor> result;
  for (const auto& state : states)
    result.push_back({state.name, without_padding(state.master, state.name, model)});
  return result;
}

std::vector<NamedTensor> moments_of(const std::vector<parallel::ParameterState>& states,
                                    const CheckpointedModel& model) {
  std::vector<NamedTensor> result;
  for (const auto& state : states) {
    for (const auto& [kind, tensor] : state.moments) {
      result.push_back({stored_name(kind, state.name), without_padding(tensor, state.name, model)});
    }
  }
  return result;
}

std::string stored_name(const std::string& kind, const std::string& parameter) {
  return kind.empty() ? parameter : kind + "." + parameter;
}

std::vector<NamedTensor> on_host(std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.cpu().contiguous();
  return tensors;
}

std::vector<checkpoint::TensorSource> sources_of(const std::vector<NamedTensor>& tensors) {
  std::vector<checkpoint::TensorSource> result;
  for (const NamedTensor& named : tensors) {
    TORCH_CHECK(named.tensor.is_contiguous(), named.name, ": only contiguous tensors are stored");
    checkpoint::TensorSource source{.name = named.name, .dtype = stored_type_of(named)};
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
  parallel::assign(bytes.view(type_to_copy(stored, target)).view(shape), target.tensor);
}

}  // namespace sidestream::launch
