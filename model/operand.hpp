// What an operator reads and its backward needs once more: kept until then, or made again.
#pragma once

#include <functional>
#include <utility>

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace sidestream::model {

// Makes a tensor a second time, bit for bit, from what somebody keeps anyway. A struct, and no
// function: autograd takes it for what it is, no tensor.
struct MadeAgain {
  std::function<torch::Tensor()> make;  // empty: the tensor is kept
};

struct Operand {
  Operand(torch::Tensor tensor)  // NOLINT(google-explicit-constructor): most operands are kept
      : value(std::move(tensor)) {}
  Operand(torch::Tensor tensor, MadeAgain made_again)
      : value(std::move(tensor)), again(std::move(made_again)) {}

  torch::Tensor value;
  MadeAgain again;

  // What save_for_backward() is given: undefined where the value is made again.
  torch::Tensor kept() const { return again.make ? torch::Tensor() : value; }
};

// Carries what makes operands again from an operator's forward to its backward.
struct MadeAgainLater : torch::CustomClassHolder {
  explicit MadeAgainLater(MadeAgain made_again) : again(std::move(made_again)) {}
  MadeAgain again;
};

constexpr const char* kMadeAgain = "made_again";

inline void keep(torch::autograd::AutogradContext* context, const MadeAgain& again) {
  if (!again.make) return;
  context->saved_data[kMadeAgain] =
      c10::IValue::make_capsule(c10::make_intrusive<MadeAgainLater>(again));
}

// The operand in backward: `saved`, or made again where that is undefined. What it was made from is
// let go, so that a graph can be gone through once.
inline torch::Tensor take_operand(torch::autograd::AutogradContext* context,
                                  const torch::Tensor& saved) {
  if (saved.defined()) return saved;
  const auto entry = context->saved_data.find(kMadeAgain);
  TORCH_CHECK(entry != context->saved_data.end(),
              "what --recompute makes again can be differentiated once; --recompute none has no "
              "such limit");
  const c10::IValue later = entry->second;
  context->saved_data.erase(entry);
  const torch::NoGradGuard no_grad;
  return static_cast<MadeAgainLater*>(later.toCapsule().get())->again.make();
}

}  // namespace sidestream::model
