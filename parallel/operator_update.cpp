#include "parallel/operator_update.hpp"

#include <cmath>
#include <limits>

namespace sidestream::parallel {

using torch::Tensor;

OperatorUpdate::OperatorUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
                               const GradientSpace& gradients, const DeviceTools& tools)
    : DeviceStepUpdate(config, parameters, gradients, tools),
      gradients_(gradients),
      zero_(torch::zeros({}, torch::dtype(torch::kFloat32).device(parameters.device()))) {
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (adamw || config_.momentum != 0) first_.push_back(torch::zeros_like(parameters.master(i)));
    if (adamw) second_.push_back(torch::zeros_like(parameters.master(i)));
  }
}

// Products with host numbers are arguments of kernels: no copy to the device.
OperatorUpdate::Factors OperatorUpdate::factors_of(const UpdateRequest& request) const {
  const auto time = static_cast<double>(request.step);
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  const double first_bias = adamw ? 1 - std::pow(config_.beta1, time) : 1;
  const double second = adamw ? config_.beta2 : config_.momentum;
  const Tensor good = norm_.scalars()[2].eq(0);
  const Tensor one = good.to(torch::kFloat64);  // zero after a bad step
  return {.good = good,
          .scale = norm_.scalars()[1],
          .decay = one.mul(-request.lr * config_.weight_decay).add_(1),
          .first = one.mul(1 - config_.beta1).to(torch::kFloat32),
          .second = one.mul(second - 1).add_(1),
          .minus_lr = one.mul(-request.lr / first_bias),
          .second_bias = std::sqrt(1 - std::pow(config_.beta2, time))};
}

double OperatorUpdate::update(const UpdateRequest& request) {
  const torch::NoGradGuard no_grad;
  settle(request);
  const Factors factors = factors_of(request);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
      run_adamw(i, factors);
    } else {
      run_sgd(i, factors);
    }
    if (parameters_.has_master()) parameters_.weights(i).copy_(parameters_.master(i));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// In fp32, scaled; not yet cleared after a bad step.
Tensor OperatorUpdate::gradient_of(std::size_t parameter, const Factors& factors) const {
  return gradients_.view(parameter).to(torch::kFloat32).mul(factors.scale);
}

void OperatorUpdate::run_adamw(std::size_t parameter, const Factors& factors) {
  const Tensor gradient = at::where(factors.good, gradient_of(parameter, factors), zero_);
  const Tensor& weights = parameters_.master(parameter);
  const Tensor& first = first_[parameter];
  const Tensor& second = second_[parameter];

  if (parameters_.at(parameter).decays()) weights.mul_(factors.decay);
  first.lerp_(gradient, factors.first);
  second.mul_(factors.second).addcmul_(gradient, gradient, 1 - config_.beta2);
  const Tensor denominator = second.sqrt().div_(factors.second_bias).add_(config_.eps);
  weights.add_(first.mul(factors.minus_lr).div_(denominator));
}

void OperatorUpdate::run_sgd(std::size_t parameter, const Factors& factors) {
  Tensor gradient = gradient_of(parameter, factors);
  const Tensor& weights = parameters_.master(parameter);

  if (parameters_.at(parameter).decays()) gradient.add_(weights, config_.weight_decay);
  gradient = at::where(factors.good, gradient, zero_);
  if (!first_.empty()) gradient = first_[parameter].mul_(factors.second).add_(gradient);
  weights.add_(gradient.mul(factors.minus_lr));
}

std::vector<Moment> OperatorUpdate::moments(std::size_t parameter) const {
  if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
    return adamw_moments(first_.at(parameter), second_.at(parameter));
  }
  if (first_.empty()) return {};
  return sgd_moments(first_.at(parameter));
}

}  // namespace sidestream::parallel
