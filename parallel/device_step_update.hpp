// What both updates on a device share: every number that depends on the gradients stays there, and
// what the host chooses for a step is brought there first (optim::StepRule).
#pragma once

#include "parallel/device_norm.hpp"
#include "parallel/step_update.hpp"

namespace sidestream::parallel {

class DeviceStepUpdate : public StepUpdate {
 public:
  void layout_changed() override { norm_.layout_changed(); }
  void complete_norm() final { norm_.measure(); }
  void prepare(const UpdateRequest& request) final;
  double grad_norm(double average) final;
  std::vector<double> parameter_squares() const final { return norm_.parameter_squares(); }
  torch::Tensor scalars() const final { return norm_.scalars(); }
  torch::Tensor loss_scale() const final { return loss_scale_; }
  optim::LossScaleState loss_scale_state() const final;  // waits for the device
  void forget_bad_norm() override;
  void restore_loss_scale(const optim::LossScaleState& state) final;

 protected:
  DeviceStepUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                   const GradientSpace& gradients, const DeviceTools& tools);
  bool has_loss_scale() const noexcept {
    return loss_scale_config_.kind != optim::LossScaling::kOff;
  }

  // Norm, clip factor and the mark of a bad step, queued; after prepare().
  void settle();
  const optim::StepRule* rule() const;  // on the device

  OptimizerConfig config_;
  ParameterSpace& parameters_;
  DeviceTools tools_;
  DeviceNorm norm_;

 private:
  void put_loss_scale(const optim::LossScaleState& state);

  optim::LossScaleConfig loss_scale_config_;
  torch::Tensor loss_scale_;   // float, on the device; undefined without one
  torch::Tensor rule_memory_;  // bytes
};

}  // namespace sidestream::parallel
