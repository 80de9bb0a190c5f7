#include "model/kernels/attention_rows.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/vectorize.hpp"
#include "model/kernels/simd_math.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

SIDESTREAM_INLINE float max_of(const float* x, std::int64_t n) {
  float highest = x[0];
#pragma omp simd reduction(max : highest)
  for (std::int64_t i = 0; i < n; ++i) highest = x[i] > highest ? x[i] : highest;
  return highest;
}

// In place. Everything before the rounding stays fp32: loops that do both are not vectorised.
SIDESTREAM_INLINE float exponentials(float* x, float highest, float scale, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    const float weight = exp_of((x[i] - highest) * scale);
    x[i] = weight;
    sum += weight;
  }
  return sum;
}

// For float the target is the source.
SIDESTREAM_INLINE void round_row(const float*, std::int64_t, float*) {}
SIDESTREAM_INLINE void round_row(const float* __restrict x, std::int64_t n,
                                 BFloat16* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = BFloat16(x[i]);
}

template <typename T>
SIDESTREAM_INLINE void softmax_of(const ScoreRows& rows, const Weights<T>& weights) {
  for (std::int64_t i = 0; i < rows.queries; ++i) {
    const std::int64_t visible = rows.first_query + i + 1;
    float* scores = rows.scores + i * rows.stride;
    const float highest = max_of(scores, visible);
    const float sum = exponentials(scores, highest, rows.scale, visible);
    for (std::int64_t k = visible; k < rows.columns; ++k) scores[k] = 0.0f;
    round_row(scores, rows.columns, weights.data + i * weights.stride);
    weights.inverse_sum[i] = 1.0f / sum;
    weights.log_sum[i] = highest * rows.scale + __builtin_logf(sum);
  }
}

// In place: scores become probabilities, gradients of probabilities become gradients of scores.
SIDESTREAM_INLINE void gradient_row(const ScoreColumns& block, std::int64_t key) {
  float* __restrict scores = block.scores + key * block.stride;
  float* __restrict grads = block.probability_grads + key * block.stride;
  const float* __restrict log_sum = block.log_sum;
  const float* __restrict delta = block.delta;
  const float scale = block.scale;
  const std::int64_t first = std::min(key, block.queries);
  for (std::int64_t q = 0; q < first; ++q) scores[q] = grads[q] = 0.0f;
  for (std::int64_t q = first; q < block.queries; ++q) {
    const float probability = exp_of(scores[q] * scale - log_sum[q]);
    scores[q] = probability;
    grads[q] = probability * (grads[q] - delta[q]) * scale;
  }
}

template <typename T>
SIDESTREAM_INLINE void gradient_rows(const ScoreColumns& block, const ScoreGradients<T>& out) {
  for (std::int64_t key = 0; key < block.keys; ++key) {
    gradient_row(block, key);
    const std::int64_t at = key * block.stride;
    round_row(block.scores + at, block.queries, out.probabilities + at);
    round_row(block.probability_grads + at, block.queries, out.score_grads + at);
  }
  T* padding = out.score_grads + block.keys * block.stride;
  std::fill(padding, out.score_grads + block.padded_keys * block.stride, T(0.0f));
}

SIDESTREAM_VECTORIZED void interleave_rows(const BFloat16* __restrict rows, std::int64_t stride,
                                           std::int64_t pairs, std::int64_t columns,
                                           std::uint32_t* __restrict words) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const BFloat16* low = rows + 2 * pair * stride;
    const BFloat16* high = low + stride;
    std::uint32_t* out = words + pair * stride;
    for (std::int64_t i = 0; i < columns; ++i) {
      out[i] = static_cast<std::uint32_t>(low[i].bits) |
               (static_cast<std::uint32_t>(high[i].bits) << 16);
    }
  }
}

SIDESTREAM_VECTORIZED void gradients(const ScoreColumns& block, const ScoreGradients<float>& out) {
  gradient_rows(block, out);
}
SIDESTREAM_VECTORIZED void gradients(const ScoreColumns& block,
                                     const ScoreGradients<BFloat16>& out) {
  gradient_rows(block, out);
}

template <typename T>
SIDESTREAM_INLINE void row_dots_of(const RowPair<T>& pair, float* delta) {
  for (std::int64_t r = 0; r < pair.rows; ++r) {
    const T* a = pair.a + r * pair.stride;
    const T* b = pair.b + r * pair.stride;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < pair.width; ++i)
      sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
    delta[r] = sum;
  }
}

}  // namespace

SIDESTREAM_VECTORIZED void softmax_causal(const ScoreRows& rows, const Weights<float>& weights) {
  softmax_of(rows, weights);
}
SIDESTREAM_VECTORIZED void softmax_causal(const ScoreRows& rows, const Weights<BFloat16>& weights) {
  softmax_of(rows, weights);
}

void softmax_causal_backward(const ScoreColumns& block, const ScoreGradients<float>& out) {
  gradients(block, out);
}

void softmax_causal_backward(const ScoreColumns& block, const ScoreGradients<BFloat16>& out) {
  gradients(block, out);
  interleave_rows(out.score_grads, block.stride, block.padded_keys / 2, block.queries,
                  reinterpret_cast<std::uint32_t*>(out.score_grads_panel));
}

SIDESTREAM_VECTORIZED void row_dots(const RowPair<float>& pair, float* delta) {
  row_dots_of(pair, delta);
}
SIDESTREAM_VECTORIZED void row_dots(const RowPair<BFloat16>& pair, float* delta) {
  row_dots_of(pair, delta);
}

}  // namespace sidestream::model::kernels
