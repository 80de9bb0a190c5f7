// Carries the memory of a weight's gradient from an operator's forward to its backward.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <torch/autograd.h>
#include <torch/types.h>

#include "model/gradient_memory.hpp"

namespace sidestream::model::fused {

// A struct, and no tensor: autograd would take that for an input.
struct GradientPlace {
  torch::Tensor memory = {};             // undefined: the operator makes its own
  std::function<bool()> take_over = {};  // GradientMemory's, of this weight
};

inline GradientPlace place_for(const torch::Tensor& weight, const GradientMemory& gradients) {
  if (!gradients.lend || !at::GradMode::is_enabled() || !weight.requires_grad()) return {};
  GradientPlace place{.memory = gradients.lend(weight)};
  if (place.memory.defined() && gradients.take_over)
    place.take_over = [weight, take_over = gradients.take_over] { return take_over(weight); };
  return place;
}

// How a place lies in saved_data.
struct KeptPlace : torch::CustomClassHolder {
  explicit KeptPlace(GradientPlace of_weight) : place(std::move(of_weight)) {}
  GradientPlace place;
};

inline void keep_place(torch::autograd::AutogradContext* context, const std::string& name,
                       const GradientPlace& place) {
  if (!place.memory.defined()) return;
  context->saved_data[name] = c10::IValue::make_capsule(c10::make_intrusive<KeptPlace>(place));
}

// Empty the second time. Autograd takes a gradient over without a copy only where nobody else holds
// it.
inline GradientPlace take_place(torch::autograd::AutogradContext* context,
                                const std::string& name) {
  const auto entry = context->saved_data.find(name);
  if (entry == context->saved_data.end()) return {};
  const c10::IValue kept = entry->second;
  context->saved_data.erase(entry);
  return std::move(static_cast<KeptPlace*>(kept.toCapsule().get())->place);
}

// The gradient of a place's weight, which is complete, as autograd is to be handed it: undefined
// where somebody takes it over. `edge`: the weight's among the tensors of forward; a gradient that
// this backward does not ask for is nobody's.
inline torch::Tensor handed_over(torch::Tensor gradient, const GradientPlace& place,
                                 const torch::autograd::AutogradContext& context,
                                 std::size_t edge) {
  const bool taken = place.take_over && context.needs_input_grad(edge) && place.take_over();
  return taken ? torch::Tensor() : std::move(gradient);
}

inline torch::Tensor or_empty(torch::Tensor memory, at::IntArrayRef shape,
                              const at::TensorOptions& options) {
  return memory.defined() ? std::move(memory) : at::empty(shape, options);
}

}  // namespace sidestream::model::fused
