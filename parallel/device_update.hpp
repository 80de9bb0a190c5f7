// The fused update on a device: every number that depends on the gradients stays there. After the
// buckets' squares, norm, clip factor, and the update of all parameters in one pass, are three
// launches more.
#pragma once

#include <vector>

#include "core/optim/adamw.hpp"
#include "parallel/device_norm.hpp"
#include "parallel/step_update.hpp"

namespace sidestream::parallel {

class DeviceUpdate final : public StepUpdate {
 public:
  DeviceUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
               const GradientSpace& gradients, const DeviceTools& tools);

  void layout_changed() override { norm_.layout_changed(); }
  void add_bucket(std::size_t bucket) override { norm_.add_bucket(bucket); }
  double grad_norm(double average) override;
  double update(const UpdateRequest& request) override;
  std::vector<Moment> moments(std::size_t parameter) const override;
  torch::Tensor scalars() const override { return norm_.scalars(); }

 private:
  void settle(const UpdateRequest& request);
  void run_adamw(const UpdateRequest& request);
  void run_sgd(const UpdateRequest& request);
  core::BFloat16* low_precision() const;

  OptimizerConfig config_;
  ParameterSpace& parameters_;
  DeviceTools tools_;
  DeviceNorm norm_;
  FlatState first_moments_;   // momentum for SGD; empty when there is none
  FlatState second_moments_;  // AdamW only
};

}  // namespace sidestream::parallel
