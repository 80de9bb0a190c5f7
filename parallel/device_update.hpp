// The fused update on a device: every number that depends on the gradients stays there, and none of
// its launches has an argument that changes from step to step. After the buckets' squares, norm,
// clip factor, and the update of all parameters in one pass, are three launches more; of sharded
// fp32 weights one a bucket; of state in host memory one a slice.
#pragma once

#include <memory>
#include <vector>

#include "core/optim/adamw.hpp"
#include "parallel/device_step_update.hpp"
#include "parallel/state_stream.hpp"

namespace sidestream::parallel {

class DeviceUpdate final : public DeviceStepUpdate {
 public:
  DeviceUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
               const GradientSpace& gradients, const DeviceTools& tools);

  void layout_changed() override;
  double update(const UpdateRequest& request) override;
  void finish_state() override;
  std::vector<Moment> moments(std::size_t parameter) const override;
  void each_state(const VisitState& visit) override;

 private:
  // Pieces that count from these places.
  struct Batch {
    optim::PieceTable table;
    float* weights;
    void* first_moments;
    void* second_moments;
  };
  std::vector<Batch> batches() const;
  void stream_batches();
  void adopt_layout();
  bool lies_apart() const;
  float* weights_in(std::size_t bucket) const;
  void run(const Batch& batch);
  void run_adamw(const Batch& batch);
  void run_sgd(const Batch& batch);
  optim::LowCopy low_precision() const;

  FlatState first_moments_;              // momentum for SGD; empty when there is none
  FlatState second_moments_;             // AdamW only
  std::unique_ptr<StateStream> stream_;  // null: state is on the device
};

}  // namespace sidestream::parallel
