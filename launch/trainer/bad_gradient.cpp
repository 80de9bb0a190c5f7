#include "launch/trainer/bad_gradient.hpp"

namespace sidestream::launch {

std::string first_bad_gradient(const torch::nn::Module& model) {
  for (const auto& parameter : model.named_parameters()) {
    const torch::Tensor& gradient = parameter.value().grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return parameter.key();
  }
  return {};
}

}  // namespace sidestream::launch
