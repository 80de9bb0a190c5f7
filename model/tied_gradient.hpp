// How the head's part of a tied weight's gradient gets from one autograd node to another: the
// nodes of embedding and head of one forward pass hold the same TiedGradient.
#pragma once

#include <utility>

#include <torch/autograd.h>
#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::tied_gradient {

constexpr const char* kTied = "tied";

// Before the embedding's forward, outside of its node: its backward is going to take what the head
// leaves, if there is one.
inline void announce(const Embeddings& embeddings) {
  if (embeddings.tied && at::GradMode::is_enabled() && embeddings.tokens_vc.requires_grad())
    embeddings.tied->is_awaited = true;
}

inline void keep(torch::autograd::AutogradContext* context,
                 const c10::intrusive_ptr<TiedGradient>& tied) {
  if (tied && tied->is_awaited) context->saved_data[kTied] = c10::IValue::make_capsule(tied);
}

// Null: none was kept.
inline c10::intrusive_ptr<TiedGradient> kept(torch::autograd::AutogradContext* context) {
  const auto entry = context->saved_data.find(kTied);
  if (entry == context->saved_data.end()) return {};
  return c10::static_intrusive_pointer_cast<TiedGradient>(entry->second.toCapsule());
}

// In the head's backward: what it is to hand to autograd, which is nothing where an embedding is
// going to. Memory that was lent for the gradient is then not complete, and nobody may take it over
// yet.
inline torch::Tensor pass_on(torch::autograd::AutogradContext* context, torch::Tensor gradient) {
  const auto tied = kept(context);
  if (!tied) return gradient;
  tied->from_head = std::move(gradient);
  return {};
}

// In the embedding's backward: what its rows are added to. Zeros of this shape where the head has
// left nothing.
inline torch::Tensor take(torch::autograd::AutogradContext* context, at::IntArrayRef shape,
                          const at::TensorOptions& options) {
  const auto tied = kept(context);
  torch::Tensor gradient = tied ? std::exchange(tied->from_head, torch::Tensor()) : torch::Tensor();
  return gradient.defined() ? gradient : at::zeros(shape, options);
}

}  // namespace sidestream::model::tied_gradient
