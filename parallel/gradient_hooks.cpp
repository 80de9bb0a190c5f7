#include "parallel/gradient_hooks.hpp"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/function_hook.h>

namespace sidestream::parallel {
namespace {

class Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(std::size_t index, std::function<void(std::size_t)> on_gradient)
      : index_(index), on_gradient_(std::move(on_gradient)) {}

  void operator()(const torch::Tensor& /*parameter*/) override { on_gradient_(index_); }

 private:
  std::size_t index_;
  std::function<void(std::size_t)> on_gradient_;
};

}  // namespace

GradientHooks::GradientHooks(const std::vector<Parameter>& parameters,
                             const std::function<void(std::size_t)>& on_gradient) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tensors_.push_back(parameters[i].tensor);
    torch::autograd::impl::set_post_acc_grad_hooks(tensors_.back(),
                                                   std::make_unique<Hook>(i, on_gradient));
  }
}

GradientHooks::~GradientHooks() {
  for (const torch::Tensor& tensor : tensors_) {
    torch::autograd::impl::post_acc_grad_hooks(tensor).reset();
  }
}

}  // namespace sidestream::parallel
