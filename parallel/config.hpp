// What a data-parallel run can choose; every optimisation has an off position. No LibTorch in this
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/dtype.hpp"
#include "core/optim/gradient_scaler.hpp"

namespace sidestream::parallel {

enum class GradientSync {
  kPerParameter,  // one blocking all-reduce per parameter after backward: the baseline
  kBucketed,      // one blocking all-reduce per bucket after backward
  kOverlapped,    // a bucket's all-reduce starts inside backward as soon as its gradients are there
};

// What becomes of a parameter that a step's backward has not reached. PyTorch's optimizers leave it
// alone where its gradient is undefined. Here kAllow counts a gradient of zero, for another rank
// may have one: weight decay and moments go on moving the parameter on every rank, also where no
// rank has used it. One that shall stay is frozen before DataParallel is made.
enum class UnusedParameters { kError, kAllow };

enum class OptimizerAlgorithm { kAdamW, kSgd };
std::string_view name_of(OptimizerAlgorithm algorithm);  // as --algorithm has it
enum class OptimizerKernel {
  kFused,    // flat, one pass over each element
  kUnfused,  // parameter by parameter with plain ATen operators
};

// Whether ranks share out the optimizer's work and state, each updating its part.
enum class StateSharing {
  kAuto,     // one copy where host ranks share a node and its memory, and the optimizer is fused
  kOff,      // every rank keeps and updates everything
  kOn,       // one copy as above, or else as kSharded
  kSharded,  // each rank keeps the state of its slices; all have the weights
};

// Where master weights and moments lie.
enum class StateResidence {
  kDevice,  // where the weights do
  kHost,    // in pinned memory of a GPU's host, from where an update streams them
};

// Decay and clipping hold for SGD as for AdamW: a program that wants PyTorch's plain SGD sets both
// to 0.
struct OptimizerConfig {
  OptimizerAlgorithm algorithm = OptimizerAlgorithm::kAdamW;
  OptimizerKernel kernel = OptimizerKernel::kFused;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // only parameters with two or more dimensions
  double momentum = 0.9;      // SGD
  double grad_clip = 1.0;     // global norm; 0: off
  // Of moments and momentum; bfloat16: rounded stochastically, with draws that depend on the seed.
  core::DType state_dtype = core::DType::kFloat32;
  std::uint64_t rounding_seed = 0;
  StateResidence state_residence = StateResidence::kDevice;

  void validate() const;  // throws ConfigError
};

// A sum of 16 bits rounds at each micro-step: from 512 on, bf16 of gradients of one sign comes out
// half as large, and fp16 from 4096 on. So many lose next to nothing, and where there are more,
// wider gradients travel once for all of them.
inline constexpr int kMostNarrowMicroSteps = 32;

struct DataParallelConfig {
  GradientSync gradient_sync = GradientSync::kOverlapped;
  std::optional<double> bucket_mb = {};  // empty: chosen from the model and the number of ranks
  double first_bucket_mb = 1.0;
  UnusedParameters unused_parameters = UnusedParameters::kError;
  // bfloat16, float16: fp32 master weights beside it
  core::DType parameter_dtype = core::DType::kFloat32;
  // float32: gradients are accumulated and summed in fp32. Empty: gradient_dtype() chooses.
  std::optional<core::DType> reduce_dtype = {};
  bool gradient_as_bucket_view = true;  // who asks may write a gradient where its bucket lies
  int grad_accumulation = 1;
  // Where host ranks of one node share their weights (kAuto, kOn), these exist once: an update
  // is shared out, but what a rank writes into its module, all ranks have, as long as the
  // communicator lives. `sidestream train` says kAuto: it never does.
  StateSharing state_sharing = StateSharing::kOff;
  OptimizerConfig optimizer = {};
  // The caller multiplies the loss (DataParallel::loss_scale()); what float16 needs.
  optim::LossScaleConfig loss_scale = {};

  void validate() const;  // throws ConfigError

  // Of the flat gradient buffers, in which micro-steps are added and gradients travel:
  // reduce_dtype, or else the parameter dtype, but float32 where that has 16 bits and more than
  // kMostNarrowMicroSteps are added.
  core::DType gradient_dtype() const;
};

// What becomes of a wish: kOff, kSharded, or kOn where all ranks share memory. The only place that
// decides it.
enum class RanksShare { kMemory, kNothing };
StateSharing settled_sharing(const DataParallelConfig& config, RanksShare ranks);

}  // namespace sidestream::parallel
