// Residual addition and layer norm over rows, forward and backward. Statistics and sums are fp32.
// Element types: float and core::BFloat16.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace sidestream::model::kernels {

struct NormRows {
  std::int64_t rows = 0, width = 0;
};

struct RowStatistics {
  float* mean = nullptr;  // [rows]
  float* rstd = nullptr;  // [rows], 1 / sqrt(variance + eps)
};

// sum = residual + branch, normed = (sum - mean) rstd weight + bias. Without a branch (null) sum is
// not written.
template <typename T>
struct NormForward {
  const T *residual = nullptr, *branch = nullptr, *weight = nullptr, *bias = nullptr;
  T *sum = nullptr, *normed = nullptr;
  RowStatistics statistics;
  float eps = 1e-5f;
};
void norm_forward(const NormRows& shape, const NormForward<float>& norm);
void norm_forward(const NormRows& shape, const NormForward<core::BFloat16>& norm);

// x is what was normed. x_grad = gradient through the norm + sum_grad (null: none). Adds to
// weight_grad and bias_grad.
template <typename T>
struct NormBackward {
  const T *x = nullptr, *normed_grad = nullptr, *sum_grad = nullptr, *weight = nullptr;
  RowStatistics statistics;
  T* x_grad = nullptr;
  float *weight_grad = nullptr, *bias_grad = nullptr;  // [width]
};
void norm_backward(const NormRows& shape, const NormBackward<float>& norm);
void norm_backward(const NormRows& shape, const NormBackward<core::BFloat16>& norm);

}  // namespace sidestream::model::kernels
