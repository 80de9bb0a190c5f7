// The update of host ranks: the norm is read, then the optimizer gets average, clip factor and the
// inverse of the loss scale in one number.
#pragma once

#include "core/optim/gradient_scaler.hpp"
#include "parallel/gradient_norm.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/step_update.hpp"

namespace sidestream::parallel {

class HostUpdate final : public StepUpdate {
 public:
  HostUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
             const GradientSpace& gradients);

  void layout_changed() override { optimizer_->layout_changed(); }
  void each_state(const VisitState& visit) override { optimizer_->each_state(visit); }
  void add_bucket(std::size_t bucket) override { norm_.add_bucket(bucket); }
  void complete_norm() override { norm_.complete(); }
  double grad_norm(double average) override { return norm_.norm() * (average / scaler_.scale()); }
  std::vector<double> parameter_squares() const override { return norm_.parameter_squares(); }
  double update(const UpdateRequest& request) override;
  std::vector<Moment> moments(std::size_t parameter) const override {
    return optimizer_->moments(parameter);
  }
  torch::Tensor loss_scale() const override { return loss_scale_; }
  optim::LossScaleState loss_scale_state() const override { return scaler_.state(); }
  void restore_loss_scale(const optim::LossScaleState& state) override;

 private:
  void publish_loss_scale() const;

  double grad_clip_;
  optim::GradientScaler scaler_;
  torch::Tensor loss_scale_;  // undefined without one
  GradientNorm norm_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace sidestream::parallel
