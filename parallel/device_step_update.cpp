#include "parallel/device_step_update.hpp"

namespace sidestream::parallel {
namespace {

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

// Step 0 is none: there is nothing but a norm to be settled.
optim::StepRule rule_of(const OptimizerConfig& config, const UpdateRequest& request) {
  optim::StepRule rule{
      .clip = {.average = request.average, .max_norm = config.grad_clip, .step = request.step},
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

DeviceStepUpdate::DeviceStepUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
                                   const GradientSpace& gradients, const DeviceTools& tools)
    : config_(config),
      parameters_(parameters),
      tools_(tools),
      norm_(parameters, gradients, tools),
      rule_memory_(torch::zeros({static_cast<std::int64_t>(sizeof(optim::StepRule))},
                                torch::dtype(torch::kUInt8).device(parameters.device()))) {}

void DeviceStepUpdate::prepare(const UpdateRequest& request) {
  tools_.kernels->set_rule(rule_of(config_, request),
                           static_cast<optim::StepRule*>(rule_memory_.mutable_data_ptr()),
                           tools_.current_stream());
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
