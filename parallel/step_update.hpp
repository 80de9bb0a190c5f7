// From the sums of all ranks' gradients to new weights: norm, clipping, optimizer. A strategy
// chosen once: on host ranks it reads the norm, on a device nothing comes back to the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "parallel/config.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/gradient_space.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

struct UpdateRequest {
  std::int64_t step = 1;  // counts from 1
  double lr = 0;
  double average = 1;  // 1 / (R G)
};

class StepUpdate {
 public:
  virtual ~StepUpdate() = default;
  StepUpdate(const StepUpdate&) = delete;
  StepUpdate& operator=(const StepUpdate&) = delete;

  // After GradientSpace::adopt().
  virtual void layout_changed() = 0;

  // For ParameterSpace::move(): visit(state) for each kind of moment, in the order of
  // moments(). Nothing where the state is never sharded.
  virtual void each_state(const VisitState& /*visit*/) {}

  // The bucket holds the sum over ranks, as far as the current stream goes. Host ranks take its
  // squares at once, a device those of all buckets in complete_norm().
  virtual void add_bucket(std::size_t /*bucket*/) {}

  // Every bucket has been added. Collective where each rank has added its slices: afterwards all
  // know the norm. Blocks a host rank then. Throws CollectiveError, PeerError.
  virtual void complete_norm() = 0;

  // Of the averaged gradient; after complete_norm(). Waits for the device.
  virtual double grad_norm(double average) = 0;

  // Of each parameter's summed gradient, in registration order; after grad_norm() of this step.
  // Waits for the device.
  virtual std::vector<double> parameter_squares() const = 0;

  // Before update() of the same request, and as early as one likes: brings what changes from step
  // to step to where a device reads it, in the order of the current stream.
  virtual void prepare(const UpdateRequest& /*request*/) {}

  // Leaves the new weights in master weights and weights. Returns the norm, or NaN where it stays
  // on the device.
  virtual double update(const UpdateRequest& request) = 0;

  virtual std::vector<Moment> moments(std::size_t parameter) const = 0;

  // Before master weights and moments that lie in host memory are read or written there: blocks
  // until the last update has left them. Nothing where they lie elsewhere.
  virtual void finish_state() {}

  // Doubles on the device, as optim::StepScalars; undefined on host ranks.
  virtual torch::Tensor scalars() const { return {}; }

  // Weights are those of a state whose norms were finite: updates change something again.
  virtual void forget_bad_norm() {}

  // See DataParallel.
  virtual torch::Tensor loss_scale() const = 0;
  virtual optim::LossScaleState loss_scale_state() const = 0;
  virtual void restore_loss_scale(const optim::LossScaleState& state) = 0;

 protected:
  StepUpdate() = default;
};

// The optimizer and the loss scale of `config`. The spaces must outlive the result. Throws
// ConfigError for an unknown kind.
std::unique_ptr<StepUpdate> make_step_update(const DataParallelConfig& config,
                                             ParameterSpace& parameters,
                                             const GradientSpace& gradients,
                                             const DeviceTools& tools);

}  // namespace sidestream::parallel
