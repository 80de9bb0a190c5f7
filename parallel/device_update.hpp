// The fused update on a device: every number that depends on the gradients stays there. A bucket's
// squares are taken right after its collective; norm, clip factor, and the update of all parameters
// in one pass, are three launches more.
#pragma once

#include <vector>

#include "core/optim/adamw.hpp"
#include "parallel/step_update.hpp"

namespace sidestream::parallel {

class DeviceUpdate final : public StepUpdate {
 public:
  DeviceUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
               const GradientSpace& gradients, DeviceTools tools);

  void layout_changed() override;
  void add_bucket(std::size_t bucket) override;
  double grad_norm(double average) override;
  double update(const UpdateRequest& request) override;
  std::vector<Moment> moments(std::size_t parameter) const override;
  torch::Tensor scalars() const override { return scalars_; }

 private:
  void count_blocks();
  void settle(const UpdateRequest& request);
  void run_adamw(const UpdateRequest& request);
  void run_sgd(const UpdateRequest& request);
  optim::PieceTable table(std::size_t first, std::size_t count) const;
  optim::FlatGradients flat_gradients() const;
  core::BFloat16* low_precision() const;
  std::vector<optim::DevicePiece> pieces_of(std::size_t parameter) const;

  OptimizerConfig config_;
  ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  DeviceTools tools_;
  FlatState first_moments_;                 // momentum for SGD; empty when there is none
  FlatState second_moments_;                // AdamW only
  std::vector<std::uint32_t> first_block_;  // of each parameter in registration order, and the end
  std::vector<std::size_t> first_piece_;    // of each bucket, and the end
  torch::Tensor first_block_on_device_, pieces_;  // bytes
  torch::Tensor squares_, parameter_squares_, scalars_;
};

}  // namespace sidestream::parallel
