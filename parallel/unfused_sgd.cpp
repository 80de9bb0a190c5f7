#include "parallel/unfused_sgd.hpp"

#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

UnfusedSgd::UnfusedSgd(const OptimizerConfig& config, ParameterSpace& parameters,
                       const GradientSpace& gradients)
    : config_(config), parameters_(parameters), gradients_(gradients) {
  if (config_.momentum == 0) return;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    momentum_.push_back(
        torch::zeros_like(parameters.master(i), scalar_type_of(config.state_dtype)));
  }
}

void UnfusedSgd::update(const OptimizerStep& step) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) update_parameter(i, step);
}

void UnfusedSgd::update_parameter(std::size_t parameter, const OptimizerStep& step) {
  torch::Tensor gradient = gradients_.view(parameter).to(torch::kFloat32).mul_(step.gradient_scale);
  const torch::Tensor& weights = parameters_.master(parameter);

  if (parameters_.at(parameter).decays()) gradient.add_(weights, config_.weight_decay);
  if (!momentum_.empty()) gradient = move_momentum(parameter, step, gradient);
  weights.add_(gradient, -step.lr);
  if (parameters_.has_master()) parameters_.weights(parameter).copy_(weights);
}

torch::Tensor UnfusedSgd::move_momentum(std::size_t parameter, const OptimizerStep& step,
                                        const torch::Tensor& gradient) {
  const torch::Tensor& kept = momentum_[parameter];
  const torch::Tensor momentum = kept.to(torch::kFloat32);  // itself where it is fp32
  momentum.mul_(config_.momentum).add_(gradient);
  keep_moment(momentum, kept,
              optim::rounding_place({.seed = config_.rounding_seed, .step = step.step}, parameter,
                                    /*first=*/0),
              optim::RoundingHalf::kFirstMoment);
  return momentum;
}

std::vector<Moment> UnfusedSgd::moments(std::size_t parameter) const {
  if (momentum_.empty()) return {};
  return sgd_moments(momentum_.at(parameter));
}

}  // namespace sidestream::parallel
