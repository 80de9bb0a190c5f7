#include "model/kernels/norm.hpp"

#include <cmath>

#include "core/base/vectorize.hpp"
#include "model/kernels/rounding.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

template <typename T>
SIDESTREAM_INLINE void add_row(const T* a, const T* b, T* sum, std::int64_t n) {
  compute_elements(
      sum, n, [=](std::int64_t i) __attribute__((always_inline)) {
        return static_cast<float>(a[i]) + static_cast<float>(b[i]);
      });
}

template <typename T>
SIDESTREAM_INLINE float mean_of(const T* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<float>(x[i]);
  return sum / static_cast<float>(n);
}

template <typename T>
SIDESTREAM_INLINE float variance_of(const T* x, float mean, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    const float centred = static_cast<float>(x[i]) - mean;
    sum += centred * centred;
  }
  return sum / static_cast<float>(n);
}

struct Scaling {
  float mean, rstd;
};

template <typename T>
SIDESTREAM_INLINE void scale_row(const T* x, Scaling s, const T* weight, const T* bias, T* out,
                                 std::int64_t n) {
  compute_elements(
      out, n, [=](std::int64_t i) __attribute__((always_inline)) {
        const float unit = (static_cast<float>(x[i]) - s.mean) * s.rstd;
        return unit * static_cast<float>(weight[i]) + static_cast<float>(bias[i]);
      });
}

template <typename T>
SIDESTREAM_INLINE void forward_of(const NormRows& shape, const NormForward<T>& norm) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t at = row * shape.width;
    const T* x = norm.residual + at;
    if (norm.branch != nullptr) {
      add_row(x, norm.branch + at, norm.sum + at, shape.width);
      x = norm.sum + at;
    }
    const float mean = mean_of(x, shape.width);
    const float rstd = 1.0f / __builtin_sqrtf(variance_of(x, mean, shape.width) + norm.eps);
    norm.statistics.mean[row] = mean;
    norm.statistics.rstd[row] = rstd;
    scale_row(x, {mean, rstd}, norm.weight, norm.bias, norm.normed + at, shape.width);
  }
}

// With u = (x - mean) rstd and g = normed_grad * weight: x_grad = rstd (g - mean(g) - u mean(g u)).
template <typename T>
struct BackwardRow {
  const T* __restrict x;
  const T* __restrict normed_grad;
  const T* __restrict weight;
  Scaling scaling;
};

struct Means {
  float gradient, projection;
};

template <typename T>
SIDESTREAM_INLINE Means sum_row(const BackwardRow<T>& row, float* __restrict weight_grad,
                                float* __restrict bias_grad, std::int64_t n) {
  float gradient = 0, projection = 0;
#pragma omp simd reduction(+ : gradient, projection)
  for (std::int64_t i = 0; i < n; ++i) {
    const float unit = (static_cast<float>(row.x[i]) - row.scaling.mean) * row.scaling.rstd;
    const float normed_grad = static_cast<float>(row.normed_grad[i]);
    const float g = normed_grad * static_cast<float>(row.weight[i]);
    gradient += g;
    projection += g * unit;
    weight_grad[i] += normed_grad * unit;
    bias_grad[i] += normed_grad;
  }
  return {gradient / static_cast<float>(n), projection / static_cast<float>(n)};
}

template <typename T>
SIDESTREAM_INLINE float input_grad(const BackwardRow<T>& row, Means means, std::int64_t i) {
  const float unit = (static_cast<float>(row.x[i]) - row.scaling.mean) * row.scaling.rstd;
  const float g = static_cast<float>(row.normed_grad[i]) * static_cast<float>(row.weight[i]);
  return row.scaling.rstd * (g - means.gradient - unit * means.projection);
}

template <typename T>
SIDESTREAM_INLINE void write_row(const BackwardRow<T>& row, Means means,
                                 const T* __restrict sum_grad, T* __restrict x_grad,
                                 std::int64_t n) {
  if (sum_grad == nullptr) {
    return compute_elements(
        x_grad, n, [=](std::int64_t i) __attribute__((always_inline)) {
          return input_grad(row, means, i);
        });
  }
  compute_elements(
      x_grad, n, [=](std::int64_t i) __attribute__((always_inline)) {
        return input_grad(row, means, i) + static_cast<float>(sum_grad[i]);
      });
}

template <typename T>
SIDESTREAM_INLINE void backward_of(const NormRows& shape, const NormBackward<T>& norm) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t at = r * shape.width;
    const BackwardRow<T> row{norm.x + at,
                             norm.normed_grad + at,
                             norm.weight,
                             {norm.statistics.mean[r], norm.statistics.rstd[r]}};
    const Means means = sum_row(row, norm.weight_grad, norm.bias_grad, shape.width);
    write_row(row, means, norm.sum_grad == nullptr ? nullptr : norm.sum_grad + at, norm.x_grad + at,
              shape.width);
  }
}

}  // namespace

SIDESTREAM_VECTORIZED void norm_forward(const NormRows& shape, const NormForward<float>& norm) {
  forward_of(shape, norm);
}
SIDESTREAM_VECTORIZED void norm_forward(const NormRows& shape, const NormForward<BFloat16>& norm) {
  forward_of(shape, norm);
}

SIDESTREAM_VECTORIZED void norm_backward(const NormRows& shape, const NormBackward<float>& norm) {
  backward_of(shape, norm);
}
SIDESTREAM_VECTORIZED void norm_backward(const NormRows& shape,
                                         const NormBackward<BFloat16>& norm) {
  backward_of(shape, norm);
}

}  // namespace sidestream::model::kernels
