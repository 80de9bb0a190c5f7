// The update of all parameters from their summed gradients: a strategy chosen once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "core/optim/stochastic_rounding.hpp"
#include "parallel/config.hpp"
#include "parallel/gradient_space.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

struct OptimizerStep {
  std::int64_t step = 1;  // counts from 1
  double lr = 0;
  double gradient_scale = 1;  // 1 / (R G), 1 / loss scale and the clip factor in one number
  std::int64_t left_out = 0;  // of the steps so far, those whose update the loss scale forbade

  std::int64_t updates() const noexcept { return step - left_out; }  // this one among them
};

// One of the tensors that an optimizer keeps for a parameter.
struct Moment {
  std::string name;      // PyTorch's
  torch::Tensor tensor;  // of the parameter's shape, fp32 or OptimizerConfig::state_dtype
};
std::vector<Moment> adamw_moments(const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq);
std::vector<Moment> sgd_moments(const torch::Tensor& momentum_buffer);

// For optimizers of plain operators, which update in fp32: into the moment's own type, in the
// threads of LibTorch. Nothing to do where they are the same tensor.
void keep_moment(const torch::Tensor& updated, const torch::Tensor& moment,
                 const optim::RoundingPlace& place, optim::RoundingHalf half);

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Leaves the new weights in master weights and weights. May overwrite the gradients.
  virtual void update(const OptimizerStep& step) = 0;

  // Written to when a state is restored.
  virtual std::vector<Moment> moments(std::size_t parameter) const = 0;

  // Sharded state: visit(state) for each kind of moment, in the order of moments().
  virtual void each_state(const VisitState& /*visit*/) {}
  // After ParameterSpace::move().
  virtual void layout_changed() {}

 protected:
  Optimizer() = default;
};

// The spaces must outlive the result. Throws ConfigError for an unknown kind.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, ParameterSpace& parameters,
                                          const GradientSpace& gradients);

}  // namespace sidestream::parallel
