// The update of host ranks: the norm is read, then the optimizer gets average and clip factor in
// one number.
#pragma once

#include "parallel/gradient_norm.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/step_update.hpp"

namespace sidestream::parallel {

class HostUpdate final : public StepUpdate {
 public:
  HostUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
             const GradientSpace& gradients)
      : grad_clip_(config.grad_clip),
        norm_(parameters, gradients),
        optimizer_(make_optimizer(config, parameters, gradients)) {}

  void layout_changed() override { optimizer_->layout_changed(); }
  void each_state(const VisitState& visit) override { optimizer_->each_state(visit); }
  void add_bucket(std::size_t bucket) override { norm_.add_bucket(bucket); }
  void complete_norm() override { norm_.complete(); }
  double grad_norm(double average) override { return norm_.norm() * average; }
  std::vector<double> parameter_squares() const override { return norm_.parameter_squares(); }
  double update(const UpdateRequest& request) override;
  std::vector<Moment> moments(std::size_t parameter) const override {
    return optimizer_->moments(parameter);
  }

 private:
  double grad_clip_;
  GradientNorm norm_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace sidestream::parallel
