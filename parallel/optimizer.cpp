#include "parallel/optimizer.hpp"

#include <ATen/Parallel.h>

#include "core/base/error.hpp"
#include "parallel/fused_adamw.hpp"
#include "parallel/fused_sgd.hpp"
#include "parallel/tensor_types.hpp"
#include "parallel/unfused_adamw.hpp"
#include "parallel/unfused_sgd.hpp"

namespace sidestream::parallel {
namespace {

constexpr std::int64_t kRoundedAtOnce = 65536;  // elements; large beside a call

}  // namespace

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

void keep_moment(const torch::Tensor& updated, const torch::Tensor& moment,
                 const optim::RoundingPlace& place, optim::RoundingHalf half) {
  if (updated.is_same(moment)) return;
  const std::span<const float> from = floats_of(updated);
  const std::span<core::BFloat16> to = bfloats_of(moment);
  at::parallel_for(0, updated.numel(), kRoundedAtOnce, [&](auto begin, auto end) {
    const auto first = static_cast<std::size_t>(begin);
    const auto count = static_cast<std::size_t>(end - begin);
    optim::round_stochastically(from.subspan(first, count), to.subspan(first, count),
                                place.from(first), half);
  });
}

}  // namespace sidestream::parallel
