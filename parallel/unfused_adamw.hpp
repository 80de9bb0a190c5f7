// AdamW parameter by parameter with plain ATen operators, each a pass over memory: the baseline,
// and the reference of the fused one. Same formula as torch.optim.AdamW.
#pragma once

#include "parallel/optimizer.hpp"

namespace sidestream::parallel {

class UnfusedAdamW : public Optimizer {
 public:
  UnfusedAdamW(const OptimizerConfig& config, ParameterSpace& parameters,
               const GradientSpace& gradients);

  void update(const OptimizerStep& step) override;
  std::vector<Moment> moments(std::size_t parameter) const override;

 private:
  struct State {
    torch::Tensor exp_avg;
    torch::Tensor exp_avg_sq;
  };
  void update_parameter(std::size_t parameter, const OptimizerStep& step);

  OptimizerConfig config_;
  ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  std::vector<State> states_;
};

}  // namespace sidestream::parallel
