// The update on a device parameter by parameter with plain ATen operators: what --fused-optimizer
// off means there. Nothing returns to the host: clip factor and the mark of a bad step are read on
// the device, by operators too, at the price of two more passes over each parameter than
// UnfusedAdamW makes. Same formulas; no update after a norm that is not finite. Learning rate and
// step are arguments of launches here: what was captured once would repeat those of its step.
#pragma once

#include <vector>

#include "parallel/device_step_update.hpp"

namespace sidestream::parallel {

class OperatorUpdate final : public DeviceStepUpdate {
 public:
  OperatorUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                 const GradientSpace& gradients, const DeviceTools& tools);

  double update(const UpdateRequest& request) override;
  std::vector<Moment> moments(std::size_t parameter) const override;

 private:
  // Zero-dimensional tensors on the device: what a step multiplies with, and the neutral element of
  // each after a bad step.
  struct Factors {
    torch::Tensor good;      // bool: there is an update
    torch::Tensor scale;     // of gradients
    torch::Tensor decay;     // of weights
    torch::Tensor first;     // AdamW: weight of the new gradient in the first moment, float
    torch::Tensor second;    // AdamW: of the old second moment; SGD: of the old momentum
    torch::Tensor minus_lr;  // of what is added to the weights
    double second_bias = 1;  // square root of AdamW's correction
    torch::Tensor inverse_second_bias = {};  // the same where the device counts the updates
    optim::RoundingSource rounding = {};
  };
  Factors factors_of(const UpdateRequest& request) const;
  torch::Tensor scalar(std::size_t offset_bytes) const;  // one of optim::StepScalars
  torch::Tensor gradient_of(std::size_t parameter, const Factors& factors) const;
  void run_adamw(std::size_t parameter, const Factors& factors);
  void run_sgd(std::size_t parameter, const Factors& factors);
  // An updated moment into its own type; LibTorch has no operator that rounds so.
  void keep(const torch::Tensor& updated, const torch::Tensor& moment,
            const optim::RoundingPlace& place, optim::RoundingHalf half) const;

  const GradientSpace& gradients_;
  torch::Tensor zero_;                 // float, on the device
  std::vector<torch::Tensor> first_;   // first moments, or momentum; empty when there is none
  std::vector<torch::Tensor> second_;  // AdamW only
};

}  // namespace sidestream::parallel
