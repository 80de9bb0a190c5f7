#include "launch/trainer/checkpointed_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "launch/trainer/checkpoint_tensors.hpp"
#include "parallel/parameter_list.hpp"

namespace sidestream::launch {
namespace {

std::string shape_text(const torch::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

NamedTensor as_stored(const NamedTensor& named) {
  if (named.tensor.scalar_type() != torch::kBool) return named;
  return {named.name, named.tensor.view(torch::kUInt8)};
}

}  // namespace

CheckpointedModule::CheckpointedModule(const torch::nn::Module& module,
                                       const parallel::DataParallel& replicas) {
  identity_ = {{"parameters", nlohmann::json::object()}, {"constants", nlohmann::json::object()}};
  for (const auto& state : replicas.states())
    identity_["parameters"][state.name] = shape_text(state.parameter);
  for (const auto& [name, tensor] : parallel::constant_tensors(module)) {
    if (identity_["parameters"].contains(name) || identity_["constants"].contains(name))
      throw core::CheckpointError(fmt::format(
          "two tensors of the module are named '{}': a checkpoint knows them by their names",
          name));
    constants_.push_back({name, tensor});
    stored_type_of(as_stored(constants_.back()));  // throws for what no file has
    identity_["constants"][name] =
        fmt::format("{} {}", c10::toString(tensor.scalar_type()), shape_text(tensor));
  }
}

std::vector<NamedTensor> CheckpointedModule::constants() const {
  std::vector<NamedTensor> stored;
  for (const NamedTensor& constant : constants_) stored.push_back(as_stored(constant));
  return stored;
}

}  // namespace sidestream::launch
