#include "model/kernels/cross_entropy.hpp"

#include <cmath>

#include "core/base/vectorize.hpp"
#include "model/kernels/rounding.hpp"
#include "model/kernels/simd_math.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

template <typename T>
SIDESTREAM_INLINE float max_of(const T* x, std::int64_t n) {
  float highest = static_cast<float>(x[0]);
#pragma omp simd reduction(max : highest)
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = static_cast<float>(x[i]);
    highest = value > highest ? value : highest;
  }
  return highest;
}

template <typename T>
SIDESTREAM_INLINE float sum_of_exponentials(const T* x, float highest, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += exp_of(static_cast<float>(x[i]) - highest);
  return sum;
}

template <typename T>
SIDESTREAM_INLINE void write_gradient(T* x, float highest, float scale, std::int64_t n) {
  compute_elements(
      x, n, [=](std::int64_t i) __attribute__((always_inline)) {
        return exp_for<T>(static_cast<float>(x[i]) - highest) * scale;
      });
}

struct Softmax {
  float highest, sum;
};

template <typename T>
SIDESTREAM_INLINE Softmax softmax_of(const CrossEntropyRow& row, const T* logits) {
  const float highest = max_of(logits, row.vocab_size);
  return {highest, sum_of_exponentials(logits, highest, row.vocab_size)};
}

template <typename T>
SIDESTREAM_INLINE void gradient_of(const CrossEntropyRow& row, Softmax softmax, T* logits) {
  const float target_logit = static_cast<float>(logits[row.target]);
  const float scale = row.gradient_scale / softmax.sum;
  write_gradient(logits, softmax.highest, scale, row.vocab_size);
  logits[row.target] = T(exp_of(target_logit - softmax.highest) * scale - row.gradient_scale);
  for (std::int64_t i = row.vocab_size; i < row.columns; ++i) logits[i] = T(0.0f);
}

SIDESTREAM_VECTORIZED Softmax softmax(const CrossEntropyRow& row, const float* logits) {
  return softmax_of(row, logits);
}
SIDESTREAM_VECTORIZED Softmax softmax(const CrossEntropyRow& row, const BFloat16* logits) {
  return softmax_of(row, logits);
}
SIDESTREAM_VECTORIZED void gradient(const CrossEntropyRow& row, Softmax softmax, float* logits) {
  gradient_of(row, softmax, logits);
}
SIDESTREAM_VECTORIZED void gradient(const CrossEntropyRow& row, Softmax softmax, BFloat16* logits) {
  gradient_of(row, softmax, logits);
}

template <typename T>
float cross_entropy_of(const CrossEntropyRow& row, T* logits) {
  const Softmax result = softmax(row, logits);
  const float loss =
      std::log(result.sum) - (static_cast<float>(logits[row.target]) - result.highest);
  if (row.gradient_scale != 0) gradient(row, result, logits);
  return loss;
}

}  // namespace

float cross_entropy(const CrossEntropyRow& row, float* logits) {
  return cross_entropy_of(row, logits);
}
float cross_entropy(const CrossEntropyRow& row, BFloat16* logits) {
  return cross_entropy_of(row, logits);
}

}  // namespace sidestream::model::kernels
