#include "parallel/device_step_update.hpp"

#include <cstddef>

namespace sidestream::parallel {
namespace {

constexpr auto kLossScaleAt =
    static_cast<std::int64_t>(offsetof(optim::StepScalars, loss_scale) / sizeof(double));
constexpr auto kLossScales =
    static_cast<std::int64_t>(sizeof(optim::LossScaleState) / sizeof(double));

}  // namespace

DeviceStepUpdate::DeviceStepUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                                   const GradientSpace& gradients, const DeviceTools& tools)
    : config_(config.optimizer),
      parameters_(parameters),
      tools_(tools),
      norm_(parameters, gradients, tools),
      loss_scale_config_(config.loss_scale) {
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

void DeviceStepUpdate::put_loss_scale(const optim::LossScaleState& state) {
  const torch::NoGradGuard no_grad;
  scalars()
      .narrow(0, kLossScaleAt, kLossScales)
      .copy_(torch::tensor({state.scale, state.good_steps, state.left_out}, torch::kFloat64));
  loss_scale_.fill_(state.scale);
}

void DeviceStepUpdate::settle(const UpdateRequest& request) {
  norm_.settle({.average = request.average,
                .max_norm = config_.grad_clip,
                .step = request.step,
                .loss_scale = loss_scale_config_,
                .lr = request.lr,
                .beta1 = config_.beta1,
                .beta2 = config_.beta2});
  const torch::NoGradGuard no_grad;
  if (has_loss_scale()) loss_scale_.copy_(scalars()[kLossScaleAt]);
}

// Whoever asks decides about a bad norm: it is not marked, so that later updates work.
double DeviceStepUpdate::grad_norm(double average) {
  settle({.step = 0, .average = average});
  return scalars()[0].item<double>();
}

}  // namespace sidestream::parallel
