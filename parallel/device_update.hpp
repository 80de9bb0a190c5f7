// The fused update on a device: every number that depends on the gradients stays there, and none of
// its launches has an argument that changes from step to step. After the buckets' squares, norm,
// clip factor, and the update of all parameters in one pass, are three launches more; of sharded
// fp32 weights one a bucket.
#pragma once

#include <vector>

#include "core/optim/adamw.hpp"
#include "parallel/device_step_update.hpp"

namespace sidestream::parallel {

class DeviceUpdate final : public DeviceStepUpdate {
 public:
  DeviceUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
               const GradientSpace& gradients, const DeviceTools& tools);

  double update(const UpdateRequest& request) override;
  std::vector<Moment> moments(std::size_t parameter) const override;
  void each_state(const VisitState& visit) override;

 private:
  // Pieces whose places in the moments are those in these weights.
  struct Batch {
    optim::PieceTable table;
    float* weights;
  };
  std::vector<Batch> batches() const;
  void run_adamw(const Batch& batch);
  void run_sgd(const Batch& batch);
  core::BFloat16* low_precision() const;

  FlatState first_moments_;   // momentum for SGD; empty when there is none
  FlatState second_moments_;  // AdamW only
};

}  // namespace sidestream::parallel
