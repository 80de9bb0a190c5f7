#include "parallel/unfused_adamw.hpp"

#include <cmath>

#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

UnfusedAdamW::UnfusedAdamW(const OptimizerConfig& config, ParameterSpace& parameters,
                           const GradientSpace& gradients)
    : config_(config), parameters_(parameters), gradients_(gradients) {
  const torch::ScalarType type = scalar_type_of(config.state_dtype);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    states_.push_back({.exp_avg = torch::zeros_like(parameters.master(i), type),
                       .exp_avg_sq = torch::zeros_like(parameters.master(i), type)});
  }
}

void UnfusedAdamW::update(const OptimizerStep& step) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < states_.size(); ++i) update_parameter(i, step);
}

void UnfusedAdamW::update_parameter(std::size_t parameter, const OptimizerStep& step) {
  const auto time = static_cast<double>(step.updates());
  const double bias_correction1 = 1 - std::pow(config_.beta1, time);
  const double bias_correction2 = 1 - std::pow(config_.beta2, time);
  const torch::Tensor gradient =
      gradients_.view(parameter).to(torch::kFloat32).mul_(step.gradient_scale);
  const torch::Tensor& weights = parameters_.master(parameter);
  const State& state = states_[parameter];
  const torch::Tensor first = state.exp_avg.to(torch::kFloat32);  // itself where it is fp32
  const torch::Tensor second = state.exp_avg_sq.to(torch::kFloat32);

  if (parameters_.at(parameter).decays()) weights.mul_(1 - step.lr * config_.weight_decay);
  first.lerp_(gradient, 1 - config_.beta1);
  second.mul_(config_.beta2).addcmul_(gradient, gradient, 1 - config_.beta2);
  const torch::Tensor denominator =
      second.sqrt().div_(std::sqrt(bias_correction2)).add_(config_.eps);
  weights.addcdiv_(first, denominator, -step.lr / bias_correction1);
  if (parameters_.has_master()) parameters_.weights(parameter).copy_(weights);
  const optim::RoundingPlace place = optim::rounding_place(
      {.seed = config_.rounding_seed, .step = step.step}, parameter, /*first=*/0);
  keep_moment(first, state.exp_avg, place, optim::RoundingHalf::kFirstMoment);
  keep_moment(second, state.exp_avg_sq, place, optim::RoundingHalf::kSecondMoment);
}

std::vector<Moment> UnfusedAdamW::moments(std::size_t parameter) const {
  const State& state = states_.at(parameter);
  return adamw_moments(state.exp_avg, state.exp_avg_sq);
}

}  // namespace sidestream::parallel
