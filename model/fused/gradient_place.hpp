// Carries the memory of a weight's gradient from an operator's forward to its backward.
#pragma once

#include <string>
#include <utility>

#include <torch/torch.h>

namespace sidestream::model::fused {

// A struct, and no tensor: autograd would take that for an input.
struct GradientPlace {
  torch::Tensor memory;  // undefined: the operator makes its own
};

inline void keep_place(torch::autograd::AutogradContext* context, const std::string& name,
                       const GradientPlace& place) {
  if (place.memory.defined()) context->saved_data[name] = place.memory;
}

// Undefined the second time. Autograd takes a gradient over without a copy only where nobody else
// holds it.
inline torch::Tensor take_place(torch::autograd::AutogradContext* context,
                                const std::string& name) {
  const auto entry = context->saved_data.find(name);
  if (entry == context->saved_data.end()) return {};
  torch::Tensor memory = entry->second.toTensor();
  context->saved_data.erase(entry);
  return memory;
}

inline torch::Tensor or_empty(torch::Tensor memory, at::IntArrayRef shape,
                              const at::TensorOptions& options) {
  return memory.defined() ? std::move(memory) : at::empty(shape, options);
}

}  // namespace sidestream::model::fused
