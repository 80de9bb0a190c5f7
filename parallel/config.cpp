#include "parallel/config.hpp"

#include <fmt/format.h>

#include <string>

#include "core/base/error.hpp"
#include "core/optim/adamw.hpp"
#include "core/optim/check.hpp"
#include "core/optim/sgd.hpp"

namespace sidestream::parallel {
namespace {

constexpr double kLargestBucketMb = 65536;

void require_training_dtype(std::string_view flag, core::DType dtype) {
  if (dtype == core::DType::kFloat32 || dtype == core::DType::kBFloat16) return;
  throw core::ConfigError(
      fmt::format("{}: expected float32 or bfloat16, found {}.", flag, core::name_of(dtype)));
}

// bfloat16 would lose digits of float16 on the way, and has no use for its scale.
void require_reduction_of_half(core::DType dtype) {
  if (dtype == core::DType::kFloat32 || dtype == core::DType::kFloat16) return;
  throw core::ConfigError(
      fmt::format("--reduce-dtype: gradients of --precision fp16 travel as they are, or as fp32; "
                  "found {}.",
                  core::name_of(dtype)));
}

}  // namespace

std::string_view name_of(OptimizerAlgorithm algorithm) {
  return algorithm == OptimizerAlgorithm::kSgd ? "sgd" : "adamw";
}

void OptimizerConfig::validate() const {
  switch (algorithm) {
    case OptimizerAlgorithm::kAdamW:
      optim::AdamWConfig{.beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay}
          .validate();
      break;
    case OptimizerAlgorithm::kSgd:
      optim::SgdConfig{.momentum = momentum, .weight_decay = weight_decay}.validate();
      break;
    default:
      throw core::ConfigError("--algorithm: expected adamw or sgd, found an unknown value.");
  }
  if (!(grad_clip >= 0)) {
    throw core::ConfigError(
        fmt::format("--grad-clip: expected 0 (off) or a positive norm, found {}.", grad_clip));
  }
  require_training_dtype("--optimizer-state-dtype", state_dtype);
  if (state_residence == StateResidence::kHost && kernel == OptimizerKernel::kUnfused) {
    throw core::ConfigError(
        "--offload optimizer needs --fused-optimizer on: plain operators update whole parameters, "
        "and state comes from the host slice by slice.");
  }
}

void DataParallelConfig::validate() const {
  optimizer.validate();
  optim::require_in_range("--first-bucket-mb", first_bucket_mb,
                          {.low = 0, .high = kLargestBucketMb});
  if (bucket_mb)
    optim::require_in_range("--bucket-mb", *bucket_mb, {.low = 0, .high = kLargestBucketMb});
  loss_scale.validate();
  if (parameter_dtype == core::DType::kFloat16) {
    if (reduce_dtype) require_reduction_of_half(*reduce_dtype);
  } else {
    require_training_dtype("--precision", parameter_dtype);
    if (reduce_dtype) require_training_dtype("--reduce-dtype", *reduce_dtype);
  }
  const bool wants_parts =
      state_sharing == StateSharing::kOn || state_sharing == StateSharing::kSharded;
  if (wants_parts && optimizer.kernel == OptimizerKernel::kUnfused) {
    throw core::ConfigError(
        "--zero 1 needs --fused-optimizer on: plain operators update whole parameters.");
  }
  if (grad_accumulation < 1) {
    throw core::ConfigError(
        fmt::format("--grad-accumulation: expected at least 1, found {}.", grad_accumulation));
  }
}

core::DType DataParallelConfig::gradient_dtype() const {
  if (reduce_dtype) return *reduce_dtype;
  const bool is_narrow = core::size_of(parameter_dtype) < core::size_of(core::DType::kFloat32);
  return is_narrow && grad_accumulation > kMostNarrowMicroSteps ? core::DType::kFloat32
                                                                : parameter_dtype;
}

StateSharing settled_sharing(const DataParallelConfig& config, RanksShare ranks) {
  const bool share = ranks == RanksShare::kMemory;
  switch (config.state_sharing) {
    case StateSharing::kAuto:
      return share && config.optimizer.kernel == OptimizerKernel::kFused ? StateSharing::kOn
                                                                         : StateSharing::kOff;
    case StateSharing::kOn:
      return share ? StateSharing::kOn : StateSharing::kSharded;
    case StateSharing::kOff:
    case StateSharing::kSharded:
      return config.state_sharing;
  }
  throw core::ConfigError("--zero: expected auto, 0 or 1, found an unknown value.");
}

}  // namespace sidestream::parallel
