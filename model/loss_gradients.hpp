// What the losses share that compute the gradients of hidden state and weight beside the loss, for
// a gradient of the loss of 1 or of LossOptions::scale, and hand them out in backward.
#pragma once

#include <utility>

#include <torch/autograd.h>
#include <torch/types.h>

namespace sidestream::model {

enum class LossGradients { kNo, kYes };

inline LossGradients wanted_gradients(const torch::Tensor& x, const torch::Tensor& weight_vc) {
  const bool wanted =
      at::GradMode::is_enabled() && (x.requires_grad() || weight_vc.requires_grad());
  return wanted ? LossGradients::kYes : LossGradients::kNo;
}

struct LossResult {
  torch::Tensor loss, x_grad, weight_grad;
};

namespace loss_gradients {

constexpr const char *kInput = "x_grad", *kWeight = "weight_grad", *kScale = "scale";

// In forward; gradients that are undefined are not kept. scale: the gradient of the loss that they
// were computed for; undefined: 1.
inline void keep(torch::autograd::AutogradContext* context, const LossResult& result,
                 const torch::Tensor& scale = {}) {
  if (result.x_grad.defined()) context->saved_data[kInput] = result.x_grad;
  if (result.weight_grad.defined()) context->saved_data[kWeight] = result.weight_grad;
  if (scale.defined()) context->saved_data[kScale] = scale;
}

// In backward: the factor for take(), from the loss's own gradient.
inline torch::Tensor missing_factor(torch::autograd::AutogradContext* context,
                                    const torch::Tensor& loss_gradient) {
  const auto scale = context->saved_data.find(kScale);
  return scale == context->saved_data.end() ? loss_gradient
                                            : loss_gradient / scale->second.toTensor();
}

// In backward, once: kInput or kWeight as it was kept. other_way: the flag without that limit.
// Throws c10::Error the second time.
inline torch::Tensor claim(torch::autograd::AutogradContext* context, const char* name,
                           const char* other_way) {
  const auto entry = context->saved_data.find(name);
  TORCH_CHECK(entry != context->saved_data.end(), "this loss can be differentiated once; ",
              other_way, " has no such limit");
  torch::Tensor gradient = entry->second.toTensor();
  context->saved_data.erase(entry);
  return gradient;
}

// claim(), times the factor, in the same memory.
// Autograd takes a gradient over without a copy only where nobody else holds it. On the host a pass
// is saved where the loss is differentiated as it is; to ask a device would be to wait for it.
inline torch::Tensor take(torch::autograd::AutogradContext* context, const char* name,
                          const torch::Tensor& factor, const char* other_way) {
  torch::Tensor gradient = claim(context, name, other_way);
  if (factor.is_cpu() && factor.item<double>() == 1) return gradient;
  return gradient.mul_(factor);
}

}  // namespace loss_gradients
}  // namespace sidestream::model
