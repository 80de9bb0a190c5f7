// A callback for every parameter whose gradient autograd has just accumulated. Removed again on
// destruction.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "parallel/parameter_list.hpp"

namespace sidestream::parallel {

class GradientHooks {
 public:
  // on_gradient(i): parameters[i].tensor.grad() is complete for this backward; called inside
  // backward, which rethrows what it throws. A parameter's storage may be replaced afterwards by
  // one of the same type on the same device.
  GradientHooks(const std::vector<Parameter>& parameters,
                const std::function<void(std::size_t)>& on_gradient);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  std::vector<torch::Tensor> tensors_;
};

}  // namespace sidestream::parallel
