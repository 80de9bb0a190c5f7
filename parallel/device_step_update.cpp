#include "parallel/device_step_update.hpp"

#include <cstddef>

namespace sidestream::parallel {
namespace {

constexpr auto kLossScaleAt =
    static_cast<std::int64_t>(offsetof(optim::StepScalars, loss_scale) / sizeof(double));
constexpr auto kFirstBadAt =
    static_cast<std::int64_t>(offsetof(optim::StepScalars, first_bad_step) / sizeof(double));
constexpr auto kLeavesOutAt =
    static_cast<std::int64_t>(offsetof(optim::StepScalars, leaves_out) / sizeof(double));
constexpr auto kLossScales =
    static_cast<std::int64_t>(sizeof(optim::LossScaleState) / sizeof(double));

optim::SgdCoefficients sgd_coefficients(const OptimizerConfig& config, double lr,
                                        double weight_decay) {
  return {.lr = static_cast<float>(lr),
          .momentum = static_cast<float>(config.momentum),
          .weight_decay = static_cast<float>(weight_decay)};
}

optim::AdamWCoefficients adamw_coefficients(const OptimizerConfig& config,
                                            const UpdateRequest& request, double weight_decay) {
  return optim::AdamWCoefficients::make(
      {.beta1 = config.beta1,
       .beta2 = config.beta2,
       .eps = config.eps,
       .weight_decay = config.weight_decay},
      {.step = request.step, .lr = request.lr, .weight_decay = weight_decay});
}

optim::ClipRule clip_rule(const OptimizerConfig& config, const optim::LossScaleConfig& loss_scale,
                          const UpdateRequest& request) {
  return {.average = request.average,
          .max_norm = config.grad_clip,
          .step = request.step,
          .loss_scale = loss_scale,
          .lr = request.lr,
          .beta1 = config.beta1,
          .beta2 = config.beta2};
}

// Step 0 is none: there is nothing but a norm to be settled.
optim::StepRule rule_of(const OptimizerConfig& config, const optim::LossScaleConfig& loss_scale,
                        const UpdateRequest& request) {
  optim::StepRule rule{.clip = clip_rule(config, loss_scale, request),
                       .rounding = {.seed = config.rounding_seed, .step = request.step},
                       .adamw_with_decay = {},
                       .adamw_without_decay = {},
                       .sgd_with_decay = sgd_coefficients(config, request.lr, config.weight_decay),
                       .sgd_without_decay = sgd_coefficients(config, request.lr, 0)};
  if (request.step == 0 || config.algorithm != OptimizerAlgorithm::kAdamW) return rule;
  rule.adamw_with_decay = adamw_coefficients(config, request, config.weight_decay);
  rule.adamw_without_decay = adamw_coefficients(config, request, 0);
  return rule;
}

}  // namespace

DeviceStepUpdate::DeviceStepUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                                   const GradientSpace& gradients, const DeviceTools& tools)
    : config_(config.optimizer),
      parameters_(parameters),
      tools_(tools),
      norm_(parameters, gradients, tools),
      loss_scale_config_(config.loss_scale),
      rule_memory_(torch::zeros({static_cast<std::int64_t>(sizeof(optim::StepRule))},
                                torch::dtype(torch::kUInt8).device(parameters.device()))) {
  if (!has_loss_scale()) return;
  loss_scale_ = torch::zeros({}, torch::dtype(torch::kFloat32).device(parameters.device()));
  put_loss_scale(optim::first_state(loss_scale_config_));
}

optim::LossScaleState DeviceStepUpdate::loss_scale_state() const {
  if (!has_loss_scale()) return {};
  const torch::Tensor state = scalars().narrow(0, kLossScaleAt, kLossScales).cpu();
  const double* values = state.const_data_ptr<double>();
  return {.scale = values[0], .good_steps = values[1], .left_out = values[2]};
}

void DeviceStepUpdate::restore_loss_scale(const optim::LossScaleState& state) {
  if (has_loss_scale()) put_loss_scale(optim::resumed_state(loss_scale_config_, state));
}

void DeviceStepUpdate::forget_bad_norm() {
  const torch::NoGradGuard no_grad;
  scalars()[kFirstBadAt].zero_();
  scalars()[kLeavesOutAt].zero_();
}

void DeviceStepUpdate::put_loss_scale(const optim::LossScaleState& state) {
  const torch::NoGradGuard no_grad;
  scalars()
      .narrow(0, kLossScaleAt, kLossScales)
      .copy_(torch::tensor({state.scale, state.good_steps, state.left_out}, torch::kFloat64));
  loss_scale_.fill_(state.scale);
}

void DeviceStepUpdate::prepare(const UpdateRequest& request) {
  tools_.kernels->set_rule(rule_of(config_, loss_scale_config_, request),
                           static_cast<optim::StepRule*>(rule_memory_.mutable_data_ptr()),
                           tools_.current_stream());
}

void DeviceStepUpdate::settle() {
  norm_.settle(rule());
  const torch::NoGradGuard no_grad;
  if (has_loss_scale()) loss_scale_.copy_(scalars()[kLossScaleAt]);
}

const optim::StepRule* DeviceStepUpdate::rule() const {
  return static_cast<const optim::StepRule*>(rule_memory_.const_data_ptr());
}

// Whoever asks decides about a bad norm: it is not marked, so that later updates work.
double DeviceStepUpdate::grad_norm(double average) {
  prepare({.step = 0, .average = average});
  settle();
  return scalars()[0].item<double>();
}

}  // namespace sidestream::parallel
