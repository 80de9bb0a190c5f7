#include "parallel/operator_update.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

using optim::StepScalars;
using torch::Tensor;

OperatorUpdate::OperatorUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                               const GradientSpace& gradients, const DeviceTools& tools)
    : DeviceStepUpdate(config, parameters, gradients, tools),
      gradients_(gradients),
      zero_(torch::zeros({}, torch::dtype(torch::kFloat32).device(parameters.device()))) {
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  const torch::ScalarType type = scalar_type_of(config_.state_dtype);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& master = parameters.master(i);
    if (adamw || config_.momentum != 0) first_.push_back(torch::zeros_like(master, type));
    if (adamw) second_.push_back(torch::zeros_like(master, type));
  }
}

// Products with host numbers are arguments of kernels: no copy to the device.
OperatorUpdate::Factors OperatorUpdate::factors_of(const UpdateRequest& request) const {
  const auto time = static_cast<double>(request.step);
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  const double first_bias = adamw ? 1 - std::pow(config_.beta1, time) : 1;
  const double second = adamw ? config_.beta2 : config_.momentum;
  const Tensor good = scalar(offsetof(StepScalars, first_bad_step))
                          .eq(0)
                          .logical_and(scalar(offsetof(StepScalars, leaves_out)).eq(0));
  const Tensor one = good.to(torch::kFloat64);  // zero after a bad step
  Factors factors{.good = good,
                  .scale = scalar(offsetof(StepScalars, gradient_scale)),
                  .decay = one.mul(-request.lr * config_.weight_decay).add_(1),
                  .first = one.mul(1 - config_.beta1).to(torch::kFloat32),
                  .second = one.mul(second - 1).add_(1),
                  .minus_lr = one.mul(-request.lr / first_bias),
                  .second_bias = std::sqrt(1 - std::pow(config_.beta2, time)),
                  .rounding = {.seed = config_.rounding_seed, .step = request.step}};
  if (!has_loss_scale() || !adamw) return factors;
  factors.minus_lr = one.mul(scalar(offsetof(StepScalars, step_size))).neg_();
  factors.inverse_second_bias =
      scalar(offsetof(StepScalars, inverse_sqrt_bias_correction2)).to(torch::kFloat32);
  return factors;
}

Tensor OperatorUpdate::scalar(std::size_t offset_bytes) const {
  return norm_.scalars()[static_cast<std::int64_t>(offset_bytes / sizeof(double))];
}

// After a bad step it is what it was, which rounding leaves as it is.
void OperatorUpdate::keep(const Tensor& updated, const Tensor& moment,
                          const optim::RoundingPlace& place, optim::RoundingHalf half) const {
  if (updated.is_same(moment)) return;
  tools_.kernels->round({.from = updated.const_data_ptr<float>(),
                         .to = static_cast<core::BFloat16*>(moment.mutable_data_ptr()),
                         .count = static_cast<std::size_t>(moment.numel()),
                         .place = place,
                         .half = half},
                        tools_.current_stream());
}

double OperatorUpdate::update(const UpdateRequest& request) {
  const torch::NoGradGuard no_grad;
  settle();
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
  const Tensor first = first_[parameter].to(torch::kFloat32);  // itself where it is fp32
  const Tensor second = second_[parameter].to(torch::kFloat32);

  if (parameters_.at(parameter).decays()) weights.mul_(factors.decay);
  first.lerp_(gradient, factors.first);
  second.mul_(factors.second).addcmul_(gradient, gradient, 1 - config_.beta2);
  Tensor denominator = second.sqrt();
  if (factors.inverse_second_bias.defined()) {
    denominator.mul_(factors.inverse_second_bias);
  } else {
    denominator.div_(factors.second_bias);
  }
  denominator.add_(config_.eps);
  weights.add_(first.mul(factors.minus_lr).div_(denominator));
  const auto place = optim::rounding_place(factors.rounding, parameter, /*first=*/0);
  keep(first, first_[parameter], place, optim::RoundingHalf::kFirstMoment);
  keep(second, second_[parameter], place, optim::RoundingHalf::kSecondMoment);
}

void OperatorUpdate::run_sgd(std::size_t parameter, const Factors& factors) {
  Tensor gradient = gradient_of(parameter, factors);
  const Tensor& weights = parameters_.master(parameter);

  if (parameters_.at(parameter).decays()) gradient.add_(weights, config_.weight_decay);
  gradient = at::where(factors.good, gradient, zero_);
  if (!first_.empty()) {
    const Tensor momentum = first_[parameter].to(torch::kFloat32);
    gradient = momentum.mul_(factors.second).add_(gradient);
    keep(momentum, first_[parameter], optim::rounding_place(factors.rounding, parameter, 0),
         optim::RoundingHalf::kFirstMoment);
  }
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
