#include "parallel/parameter_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/base/error.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {
namespace {

void require_usable(const Parameter& parameter, core::DType dtype, const torch::Device& device) {
  const torch::Tensor& tensor = parameter.tensor;
  const bool reachable = tensor.is_cpu() || tensor.is_cuda();
  if (!reachable || tensor.device() != device || tensor.layout() != torch::kStrided) {
    throw core::ConfigError(fmt::format(
        "Parameter '{}': expected a dense tensor on the host or on a GPU, all on the same, found "
        "one on {}. Build the model on the CPU and move it as a whole.",
        parameter.name, tensor.device().str()));
  }
  if (torch::autograd::impl::post_acc_grad_hooks(tensor) != nullptr) {
    throw core::ConfigError(
        fmt::format("Parameter '{}' has a hook on its gradient already: another DataParallel holds "
                    "this module, or post-accumulate hooks were registered. End that first.",
                    parameter.name));
  }
  if (tensor.scalar_type() != torch::kFloat32 && tensor.scalar_type() != scalar_type_of(dtype)) {
    throw core::ConfigError(
        fmt::format("Parameter '{}': expected float32, found {}. Initialise the model in float32; "
                    "the parameter "
                    "dtype of the run is applied afterwards.",
                    parameter.name, c10::toString(tensor.scalar_type())));
  }
}

template <typename Items>
void add_constants(const Items& items, std::vector<Parameter>& constants) {
  for (const auto& item : items) {
    const torch::Tensor& tensor = item.value();
    if (!tensor.defined() || tensor.requires_grad()) continue;
    if (tensor.layout() != torch::kStrided)
      throw core::ConfigError(
          fmt::format("buffer or constant parameter '{}': expected a dense tensor, found a sparse "
                      "one: register what it is made of",
                      item.key()));
    const auto is_it = [&](const Parameter& known) { return known.tensor.is_same(tensor); };
    if (std::ranges::none_of(constants, is_it))
      constants.push_back({.name = item.key(), .tensor = tensor});
  }
}

}  // namespace

std::vector<Parameter> trainable_parameters(const torch::nn::Module& module, core::DType dtype) {
  std::unordered_set<const void*> seen;
  std::vector<Parameter> parameters;
  for (const auto& item : module.named_parameters()) {
    const bool first = seen.insert(item.value().unsafeGetTensorImpl()).second;
    if (!first || !item.value().requires_grad()) continue;
    parameters.push_back({.name = item.key(), .tensor = item.value()});
    require_usable(parameters.back(), dtype, parameters.front().tensor.device());
  }
  if (parameters.empty()) {
    throw core::ConfigError(
        "The module has no parameter that requires a gradient: nothing to train.");
  }
  return parameters;
}

std::vector<std::size_t> indices_of(const std::vector<Parameter>& parameters,
                                    const std::vector<std::string>& names) {
  std::map<std::string, std::size_t> index_by_name;
  for (std::size_t i = 0; i < parameters.size(); ++i) index_by_name[parameters[i].name] = i;
  std::vector<std::size_t> indices;
  for (const std::string& name : names) {
    const auto found = index_by_name.extract(name);
    if (found.empty()) {
      throw core::ConfigError(
          fmt::format("Bucket order: expected every parameter's name once, found '{}', which {}.",
                      name, "is no parameter of this model or stands there twice"));
    }
    indices.push_back(found.mapped());
  }
  if (!index_by_name.empty()) {
    throw core::ConfigError(
        fmt::format("Bucket order: expected {} names, found {}; '{}' is missing.",
                    parameters.size(), names.size(), index_by_name.begin()->first));
  }
  return indices;
}

torch::Device device_of(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters())
    if (parameter.requires_grad()) return parameter.device();
  return torch::kCPU;
}

std::vector<Parameter> frozen_parameters(const torch::nn::Module& module) {
  std::vector<Parameter> frozen;
  add_constants(module.named_parameters(), frozen);
  return frozen;
}

std::vector<Parameter> constant_tensors(const torch::nn::Module& module) {
  std::vector<Parameter> constants = frozen_parameters(module);
  add_constants(module.named_buffers(), constants);
  return constants;
}

std::vector<Parameter> buffer_tensors(const torch::nn::Module& module) {
  std::vector<Parameter> buffers;
  add_constants(module.named_buffers(), buffers);
  return buffers;
}

}  // namespace sidestream::parallel
