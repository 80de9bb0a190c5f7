// Kernels of the fused operators on a GPU, each a launch on a stream: nothing returns to the host,
// nothing blocks it, nothing is allocated. All pointers are to device memory, which stays until the
// stream has passed. Rows are contiguous. Every result is the same bits in every run and on every
// GPU of a kind: no atomics, and sums in an order that does not depend on the device.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/dtype.hpp"

namespace sidestream::model::device {

using DeviceStream = void*;  // cudaStream_t

// Activations, weights and their gradients: `dtype` is float32, bfloat16 or float16; what is a
// float* stays fp32. Formulas: norm_rows.hpp, cross_entropy_rows.hpp, gelu_rows.hpp,
// row_sums.hpp.
struct NormForwardJob {
  core::DType dtype;
  std::int64_t rows, width;  // width at most kWidestNorm
  const void* residual;
  const void* branch;  // null: none, and no sum
  const void* weight;
  const void* bias;
  void* sum;
  void* normed;
  float* mean;  // [rows]
  float* rstd;
  float eps;
};

// Partial sums of the weight's gradient, of the bias's, and of x_grad before it is rounded, the
// gradient of a bias that was added to what x comes from; column_sums() makes gradients of them.
struct NormBackwardJob {
  core::DType dtype;
  std::int64_t rows, width;
  const void* x;
  const void* normed_grad;
  const void* sum_grad;  // null: none
  const void* weight;
  const float* mean;
  const float* rstd;
  void* x_grad;
  float* partial;  // [3, norm_parts(rows, width), width]
};

struct GeluForwardJob {
  core::DType dtype;
  std::int64_t count;
  const void* before;
  void* activation;
};

struct GeluBackwardJob {
  core::DType dtype;
  std::int64_t rows, width;
  const void* before;
  void* gradient;       // of the activation; becomes that of `before`
  void* activation;     // null: not wanted
  float* bias_partial;  // [row_parts(rows, width), width]
};

// The first stage of a sum over rows; column_sums() is the second.
struct RowSumsJob {
  core::DType dtype;
  std::int64_t rows, width;
  const void* x;
  float* partial;  // [row_parts(rows, width), width]
};

// first = sums over the parts of partial[0], second of partial[1], third of partial[2].
struct ColumnSumsJob {
  core::DType dtype;
  const float* partial;  // [1 to 3, parts, width]
  std::int64_t parts, width;
  void* first;
  void* second = nullptr;  // null: one set
  void* third = nullptr;   // null: two
};

struct CrossEntropyJob {
  core::DType dtype;
  std::int64_t rows;
  std::int64_t stride;      // of a row, a multiple of kLogitStride; logits begin at 16 bytes
  std::int64_t vocab_size;  // at most the stride; columns from here on get gradient 0
  void* logits;             // become their gradient, unless gradient_scale is 0
  const std::int64_t* targets;
  float* losses;  // [rows]
  float gradient_scale;
  const float* loss_scale = nullptr;  // multiplies gradient_scale; null: one
};

// values *= *factor, unless that is 1.
struct ScaleJob {
  core::DType dtype;
  std::int64_t count;
  void* values;
  const float* factor;
};

// out[b][t] = tokens[ids[b][t]] + positions[t]; NaN where an id is outside the vocabulary.
struct EmbedJob {
  core::DType dtype;
  std::int64_t batch, time, vocabulary, width;
  const std::int64_t* ids;  // [batch, time]
  const void* tokens;       // [vocabulary, width]
  const void* positions;    // [time or more, width]; null: none
  void* out;                // [batch, time, width]
};

// target[ids[i]] += gradients[order[i]], in the order of i: two launches. Ids outside the
// vocabulary are passed over.
struct TokenGradientsJob {
  core::DType dtype;
  std::int64_t count, vocabulary, width;
  const void* gradients;      // [count, width]
  const std::int32_t* ids;    // [count], ascending
  const std::int64_t* order;  // [count]
  float* pieces;              // [token_tiles(count), 2, width]
  void* target;               // [vocabulary, width]
};

constexpr std::int64_t kWidestNorm = 8192;
constexpr std::int64_t kLogitStride = 64;

// All throw Error for another dtype, for what a job says it needs and has not, and when the launch
// fails. A job without rows launches nothing, but for column_sums, whose sums are then 0.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  virtual void norm_forward(const NormForwardJob& job, DeviceStream stream) = 0;
  virtual void norm_backward(const NormBackwardJob& job, DeviceStream stream) = 0;
  virtual void gelu_forward(const GeluForwardJob& job, DeviceStream stream) = 0;
  virtual void gelu_backward(const GeluBackwardJob& job, DeviceStream stream) = 0;
  virtual void row_sums(const RowSumsJob& job, DeviceStream stream) = 0;
  virtual void column_sums(const ColumnSumsJob& job, DeviceStream stream) = 0;
  virtual void cross_entropy(const CrossEntropyJob& job, DeviceStream stream) = 0;
  virtual void scale(const ScaleJob& job, DeviceStream stream) = 0;
  virtual void embed(const EmbedJob& job, DeviceStream stream) = 0;
  virtual void token_gradients(const TokenGradientsJob& job, DeviceStream stream) = 0;
};

// Touches no device. Null in a build without CUDA.
std::shared_ptr<DeviceKernels> make_device_kernels();

}  // namespace sidestream::model::device
