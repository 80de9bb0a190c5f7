#include "model/kernels/norm.hpp"

#include <cmath>

#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

struct Scaling {
  float mean, rstd;
};

// The sum of a row as it is stored, and the mean of that.
template <typename L, typename T>
SIDESTREAM_INLINE float add_row(const T* a, const T* b, T* sum, std::int64_t n) {
  return sum_over<L>(
             n,
             [=](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
               const typename L::Floats both =
                   load_lanes<L>(a + i, count) + load_lanes<L>(b + i, count);
               store_lanes<L>(both, count, sum + i);
               return as_stored<L, T>(both);
             }) /
         static_cast<float>(n);
}

template <typename L, typename T>
SIDESTREAM_INLINE float mean_of(const T* x, std::int64_t n) {
  return sum_over<L>(
             n, [=](std::int64_t i, std::int64_t count)
                    __attribute__((always_inline)) { return load_lanes<L>(x + i, count); }) /
         static_cast<float>(n);
}

template <typename L, typename T>
SIDESTREAM_INLINE float variance_of(const T* x, float mean, std::int64_t n) {
  return sum_over<L>(
             n,
             [=](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
               const typename L::Floats centred = load_lanes<L>(x + i, count) - mean;
               return typename L::Floats(centred * centred);
             }) /
         static_cast<float>(n);
}

template <typename L, typename T>
SIDESTREAM_INLINE void scale_row(const T* x, Scaling s, const NormForward<T>& norm, T* out,
                                 std::int64_t n) {
  const T *weight = norm.weight, *bias = norm.bias;
  compute_lanes<L>(
      out, n, [=](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const typename L::Floats unit = (load_lanes<L>(x + i, count) - s.mean) * s.rstd;
        return typename L::Floats(unit * load_lanes<L>(weight + i, count) +
                                  load_lanes<L>(bias + i, count));
      });
}

struct Forward {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const NormRows& shape, const NormForward<T>& norm) {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      const std::int64_t at = row * shape.width;
      const T* x = norm.branch == nullptr ? norm.residual + at : norm.sum + at;
      const float mean = norm.branch == nullptr ? mean_of<L>(x, shape.width)
                                                : add_row<L>(norm.residual + at, norm.branch + at,
                                                             norm.sum + at, shape.width);
      const float rstd = 1.0f / __builtin_sqrtf(variance_of<L>(x, mean, shape.width) + norm.eps);
      norm.statistics.mean[row] = mean;
      norm.statistics.rstd[row] = rstd;
      scale_row<L>(x, {mean, rstd}, norm, norm.normed + at, shape.width);
    }
  }
};

// With u = (x - mean) rstd and g = normed_grad * weight: x_grad = rstd (g - mean(g) - u mean(g u)).
template <typename T>
struct BackwardRow {
  const T *x, *normed_grad, *weight;
  Scaling scaling;
};

template <typename L>
struct UnitAndGradient {
  typename L::Floats unit, normed_grad, g;
};

template <typename L, typename T>
SIDESTREAM_INLINE UnitAndGradient<L> at(const BackwardRow<T>& row, std::int64_t i,
                                        std::int64_t count) {
  const typename L::Floats normed_grad = load_lanes<L>(row.normed_grad + i, count);
  return {(load_lanes<L>(row.x + i, count) - row.scaling.mean) * row.scaling.rstd, normed_grad,
          normed_grad * load_lanes<L>(row.weight + i, count)};
}

struct Means {
  float gradient, projection;
};

// Lanes past the end have no gradient, and add nothing.
template <typename L, typename T>
SIDESTREAM_INLINE Means sum_row(const BackwardRow<T>& row, float* weight_grad, float* bias_grad,
                                std::int64_t n) {
  using Floats = typename L::Floats;
  Floats gradient = {};
  const float projection = sum_over<L>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const UnitAndGradient<L> u = at<L>(row, i, count);
        const Floats weight = load_lanes<L>(weight_grad + i, count) + u.normed_grad * u.unit;
        const Floats bias = load_lanes<L>(bias_grad + i, count) + u.normed_grad;
        store_lanes<L>(weight, count, weight_grad + i);
        store_lanes<L>(bias, count, bias_grad + i);
        gradient += u.g;
        return Floats(u.g * u.unit);
      });
  return {sum_of<L>(gradient) / static_cast<float>(n), projection / static_cast<float>(n)};
}

template <typename L, typename T>
SIDESTREAM_INLINE typename L::Floats input_grad(const BackwardRow<T>& row, Means means,
                                                std::int64_t i, std::int64_t count) {
  const UnitAndGradient<L> u = at<L>(row, i, count);
  return row.scaling.rstd * (u.g - means.gradient - u.unit * means.projection);
}

template <typename L, typename T>
SIDESTREAM_INLINE void write_row(const BackwardRow<T>& row, Means means, const T* sum_grad,
                                 T* x_grad, std::int64_t n) {
  using Floats = typename L::Floats;
  if (sum_grad == nullptr) {
    return compute_lanes<L>(
        x_grad, n, [=](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          return input_grad<L>(row, means, i, count);
        });
  }
  compute_lanes<L>(
      x_grad, n, [=](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        return Floats(input_grad<L>(row, means, i, count) + load_lanes<L>(sum_grad + i, count));
      });
}

struct Backward {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const NormRows& shape, const NormBackward<T>& norm) {
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      const std::int64_t first = r * shape.width;
      const BackwardRow<T> row{norm.x + first,
                               norm.normed_grad + first,
                               norm.weight,
                               {norm.statistics.mean[r], norm.statistics.rstd[r]}};
      const Means means = sum_row<L>(row, norm.weight_grad, norm.bias_grad, shape.width);
      write_row<L>(row, means, norm.sum_grad == nullptr ? nullptr : norm.sum_grad + first,
                   norm.x_grad + first, shape.width);
    }
  }
};

}  // namespace

void norm_forward(const NormRows& shape, const NormForward<float>& norm) {
  run_in_lanes<Forward>(shape, norm);
}
void norm_forward(const NormRows& shape, const NormForward<BFloat16>& norm) {
  run_in_lanes<Forward>(shape, norm);
}

void norm_backward(const NormRows& shape, const NormBackward<float>& norm) {
  run_in_lanes<Backward>(shape, norm);
}
void norm_backward(const NormRows& shape, const NormBackward<BFloat16>& norm) {
  run_in_lanes<Backward>(shape, norm);
}

}  // namespace sidestream::model::kernels
