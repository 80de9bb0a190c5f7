// The optimizer's work on a GPU: norm, clip factor and update over flat buffers, each a launch on a
// stream. Nothing returns to the host, nothing blocks it; what depends on the step's gradients
// stays in StepScalars on the device, and what the host chooses for a step lies beside it in a
// StepRule: no argument of a launch changes from step to step.
//
// All pointers are to device memory, whose owner keeps it until the stream has passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/dtype.hpp"
#include "core/base/float16.hpp"
#include "core/optim/elements.hpp"
#include "core/optim/reduce.hpp"
#include "core/optim/step_rule.hpp"

namespace sidestream::optim {

using DeviceStream = void*;  // cudaStream_t; never null

// At most kSumBlock elements of one parameter, and where they lie in each flat buffer.
struct DevicePiece {
  std::uint64_t weight;    // first element, in weights, moments and momentum
  std::uint64_t low;       // in the low-precision copy
  std::uint64_t gradient;  // in the gradients
  std::uint32_t count;
  std::uint32_t block;      // number of the piece in registration order
  std::uint32_t decays;     // 1: weight decay applies
  std::uint32_t parameter;  // its number in registration order
  std::uint64_t first;      // first element, within the parameter
};
static_assert(sizeof(DevicePiece) == 48);

struct PieceTable {
  const DevicePiece* pieces;
  std::size_t count;
};

struct FlatGradients {
  const void* data;
  core::DType dtype;  // float32, bfloat16 or float16
};

// The weights in 16 bits beside master weights. Null: no copy.
struct LowCopy {
  void* data = nullptr;
  core::DType dtype = core::DType::kBFloat16;  // or float16

  LowCopy() = default;
  LowCopy(void* copy, core::DType of) : data(copy), dtype(of) {}
  LowCopy(std::nullptr_t) {}
  LowCopy(core::BFloat16* copy) : data(copy) {}
  LowCopy(core::Float16* copy) : data(copy), dtype(core::DType::kFloat16) {}
};

// squares[piece.block] = sum of squares of each piece, in the order of sums_of_squares().
struct SquaresJob {
  PieceTable table;
  FlatGradients gradients;
  double* squares;
};

// Adds the squares parameter by parameter, then the parameters in registration order, and settles
// the scalars.
struct SettleJob {
  const double* squares;
  const std::uint32_t* first_block;  // of each parameter, and one more: the number of blocks
  std::size_t parameters;
  double* parameter_squares;  // written
  StepScalars* scalars;       // read and written
  const StepRule* rule;       // of set_rule(), here and below
};

// Reads the gradients' scale from the scalars, and how many updates there were before if they know
// better; does nothing in a step that is left out, and after a bad step.
struct AdamWJob {
  PieceTable table;
  FlatGradients gradients;
  float* weights;
  void* first_moments;  // of moment_dtype, as the second ones
  void* second_moments;
  LowCopy low_precision;
  const StepScalars* scalars;
  const StepRule* rule;
  core::DType moment_dtype = core::DType::kFloat32;  // or bfloat16
};

struct SgdJob {
  PieceTable table;
  FlatGradients gradients;
  float* weights;
  void* momentum;  // of moment_dtype; null when there is none
  LowCopy low_precision;
  const StepScalars* scalars;
  const StepRule* rule;
  core::DType moment_dtype = core::DType::kFloat32;  // or bfloat16
};

SIDESTREAM_INLINE const AdamWCoefficients& coefficients_of(const AdamWJob& job,
                                                           const DevicePiece& piece) {
  return piece.decays != 0 ? job.rule->adamw_with_decay : job.rule->adamw_without_decay;
}
SIDESTREAM_INLINE const SgdCoefficients& coefficients_of(const SgdJob& job,
                                                         const DevicePiece& piece) {
  return piece.decays != 0 ? job.rule->sgd_with_decay : job.rule->sgd_without_decay;
}

// A moment that plain operators have updated in fp32, into the memory where it is kept.
struct RoundingJob {
  const float* from;
  core::BFloat16* to;
  std::size_t count;
  RoundingPlace place;
  RoundingHalf half;
};

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;

  // *to = rule, in the order of the stream; the value travels with the launch. Throw core::Error
  // when a launch fails, as all of them do.
  virtual void set_rule(const StepRule& rule, StepRule* to, DeviceStream stream) = 0;
  virtual void squares(const SquaresJob& job, DeviceStream stream) = 0;
  virtual void settle(const SettleJob& job, DeviceStream stream) = 0;
  virtual void adamw(const AdamWJob& job, DeviceStream stream) = 0;
  virtual void sgd(const SgdJob& job, DeviceStream stream) = 0;
  virtual void round(const RoundingJob& job, DeviceStream stream) = 0;

 protected:
  DeviceKernels() = default;
};

// CUDA's; throws ConfigError in a build without CUDA.
std::shared_ptr<DeviceKernels> make_device_kernels();

}  // namespace sidestream::optim
