// SGD with momentum parameter by parameter with plain ATen operators. Same formula as
// torch.optim.SGD.
#pragma once

#include "parallel/optimizer.hpp"

namespace sidestream::parallel {

class UnfusedSgd : public Optimizer {
 public:
  UnfusedSgd(const OptimizerConfig& config, ParameterSpace& parameters,
             const GradientSpace& gradients);

  void update(const OptimizerStep& step) override;
  std::vector<Moment> moments(std::size_t parameter) const override;

 private:
  void update_parameter(std::size_t parameter, const OptimizerStep& step);
  // Returns the new one in fp32.
  torch::Tensor move_momentum(std::size_t parameter, const OptimizerStep& step,
                              const torch::Tensor& gradient);

  OptimizerConfig config_;
  ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  std::vector<torch::Tensor> momentum_;  // empty without momentum
};

}  // namespace sidestream::parallel
