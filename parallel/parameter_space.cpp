#include "parallel/parameter_space.hpp"

#include <utility>

#include "parallel/bucket_plan.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

ParameterSpace::ParameterSpace(std::vector<Parameter> parameters, core::DType dtype,
                               StateMemory memory)
    : parameters_(std::move(parameters)), dtype_(dtype), memory_(std::move(memory)) {
  const torch::NoGradGuard no_grad;
  weights_ = make_flat(dtype_, dtype_);
  if (has_master()) masters_ = make_state(core::DType::kFloat32);
  const bool copies = part().index == 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (copies) master(i).copy_(parameters_[i].tensor);
    if (copies && has_master()) weights_.views[i].copy_(masters_.views[i]);
    parameters_[i].tensor.set_data(weights_.views[i]);
  }
}

// Padded as elements of type `layout` are.
FlatState ParameterSpace::make_flat(core::DType dtype, core::DType layout) {
  std::size_t total = 0;
  std::vector<std::size_t> offsets;
  for (const Parameter& parameter : parameters_) {
    offsets.push_back(total);
    total += padded_elements(parameter.elements(), layout);
  }
  FlatState state;
  state.flat = memory_.zeros(total, dtype, device());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& tensor = parameters_[i].tensor;
    state.views.push_back(
        state.flat.narrow(0, static_cast<std::int64_t>(offsets[i]), tensor.numel())
            .view(tensor.sizes()));
  }
  return state;
}

std::vector<std::string> ParameterSpace::names() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  return names;
}

std::vector<std::size_t> ParameterSpace::elements() const {
  std::vector<std::size_t> elements;
  for (const Parameter& parameter : parameters_) elements.push_back(parameter.elements());
  return elements;
}

void ParameterSpace::refresh_weights() {
  if (!has_master()) return;
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < size(); ++i) weights_.views[i].copy_(masters_.views[i]);
}

FlatState ParameterSpace::make_state(core::DType dtype) {
  return make_flat(dtype, core::DType::kFloat32);
}

}  // namespace sidestream::parallel
