#include "parallel/optimizer.hpp"

#include "core/base/error.hpp"
#include "parallel/fused_adamw.hpp"
#include "parallel/fused_sgd.hpp"
#include "parallel/unfused_adamw.hpp"
#include "parallel/unfused_sgd.hpp"

namespace sidestream::parallel {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, ParameterSpace& parameters,
                                          const GradientSpace& gradients) {
  const bool fused = config.kernel == OptimizerKernel::kFused;
  switch (config.algorithm) {
    case OptimizerAlgorithm::kAdamW:
      if (fused) return std::make_unique<FusedAdamW>(config, parameters, gradients);
      return std::make_unique<UnfusedAdamW>(config, parameters, gradients);
    case OptimizerAlgorithm::kSgd:
      if (fused) return std::make_unique<FusedSgd>(config, parameters, gradients);
      return std::make_unique<UnfusedSgd>(config, parameters, gradients);
  }
  throw core::ConfigError("--algorithm: expected adamw or sgd, found an unknown value.");
}

std::vector<Moment> adamw_moments(const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq) {
  return {{"exp_avg", exp_avg}, {"exp_avg_sq", exp_avg_sq}};
}

std::vector<Moment> sgd_moments(const torch::Tensor& momentum_buffer) {
  return {{"momentum_buffer", momentum_buffer}};
}

}  // namespace sidestream::parallel
