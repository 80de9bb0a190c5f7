#include "model/kernels/attention_rows.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/vectorize.hpp"
#include "model/kernels/lanes.hpp"
#include "model/kernels/simd_math.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

// The visible part of a row in whole vectors: what lies beside it is masked.
struct Row {
  float* data;
  std::int64_t visible, length;
};

template <typename L>
SIDESTREAM_INLINE float highest_of(const Row& row) {
  using Floats = typename L::Floats;
  const Floats first = Floats{} + row.data[0];
  Floats highest = first;
  for (std::int64_t i = 0; i < row.length; i += L::kCount) {
    const Floats x = load_lanes<L>(row.data + i);
    highest = larger<Floats>(lanes_before<L>(i, row.visible) ? x : first, highest);
  }
  return max_of<L>(highest);
}

template <typename L, typename T>
SIDESTREAM_INLINE float exponentials(const Row& row, float highest, float scale, T* weights) {
  using Floats = typename L::Floats;
  Floats sum = {};
  for (std::int64_t i = 0; i < row.length; i += L::kCount) {
    const Floats x = load_lanes<L>(row.data + i);
    const Floats exponential = exp_for<T>(Floats((x - highest) * scale));
    const Floats weight = lanes_before<L>(i, row.visible) ? exponential : Floats{};
    store_lanes<L>(weight, L::kCount, weights + i);
    sum += weight;
  }
  return sum_of<L>(sum);
}

struct SoftmaxCausal {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const ScoreRows& rows, const Weights<T>& weights) {
    for (std::int64_t i = 0; i < rows.queries; ++i) {
      for (const RowsAhead& ahead : rows.ahead) expect_later(ahead, i);
      float* scores = rows.scores + i * rows.stride;
      const std::int64_t visible = rows.first_query + i + 1;
      const Row row{scores, visible, (visible + L::kCount - 1) / L::kCount * L::kCount};
      const float highest = highest_of<L>(row);
      T* out = weights.data + i * weights.stride;
      const float sum = exponentials<L>(row, highest, rows.scale, out);
      std::fill(out + row.length, out + rows.columns, T(0.0f));
      weights.inverse_sum[i] = 1.0f / sum;
      weights.log_sum[i] = highest * rows.scale + __builtin_logf(sum);
    }
  }
};

// Scores become probabilities, gradients of probabilities become gradients of scores; in place for
// float.
template <typename L, typename T>
SIDESTREAM_INLINE void gradient_row(const ScoreColumns& block, std::int64_t key,
                                    const ScoreGradients<T>& out) {
  using Floats = typename L::Floats;
  const std::int64_t at = key * block.stride;
  const float* scores = block.scores + at;
  const float* grads = block.probability_grads + at;
  T* probabilities = out.probabilities + at;
  T* score_grads = out.score_grads + at;
  const std::int64_t first = std::min(key, block.queries) / L::kCount * L::kCount;
  std::fill(probabilities, probabilities + first, T(0.0f));
  std::fill(score_grads, score_grads + first, T(0.0f));
  for (std::int64_t q = first; q < block.queries; q += L::kCount) {
    const auto hidden = lanes_before<L>(q, key);
    const Floats probability = exp_for<T>(
        Floats(load_lanes<L>(scores + q) * block.scale - load_lanes<L>(block.log_sum + q)));
    const Floats gradient =
        probability * (load_lanes<L>(grads + q) - load_lanes<L>(block.delta + q)) * block.scale;
    store_lanes<L>(hidden ? Floats{} : probability, L::kCount, probabilities + q);
    store_lanes<L>(hidden ? Floats{} : gradient, L::kCount, score_grads + q);
  }
}

struct ScoreGradientRows {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const ScoreColumns& block, const ScoreGradients<T>& out) {
    for (std::int64_t key = 0; key < block.keys; ++key) {
      for (const RowsAhead& ahead : block.ahead) expect_later(ahead, key);
      gradient_row<L>(block, key, out);
    }
    T* padding = out.score_grads + block.keys * block.stride;
    std::fill(padding, out.score_grads + block.padded_keys * block.stride, T(0.0f));
  }
};

struct RowDots {
  template <typename L, typename T>
  SIDESTREAM_INLINE static void run(const RowPair<T>& pair, float* delta) {
    for (std::int64_t r = 0; r < pair.rows; ++r) {
      const T* a = pair.a + r * pair.stride;
      const T* b = pair.b + r * pair.stride;
      typename L::Floats sum = {};
      for_vectors<L>(
          pair.width, [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
            sum += load_lanes<L>(a + i, n) * load_lanes<L>(b + i, n);
          });
      delta[r] = sum_of<L>(sum);
    }
  }
};

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

}  // namespace

void softmax_causal(const ScoreRows& rows, const Weights<float>& weights) {
  run_in_lanes<SoftmaxCausal>(rows, weights);
}
void softmax_causal(const ScoreRows& rows, const Weights<BFloat16>& weights) {
  run_in_lanes<SoftmaxCausal>(rows, weights);
}

void softmax_causal_backward(const ScoreColumns& block, const ScoreGradients<float>& out) {
  run_in_lanes<ScoreGradientRows>(block, out);
}

void softmax_causal_backward(const ScoreColumns& block, const ScoreGradients<BFloat16>& out) {
  run_in_lanes<ScoreGradientRows>(block, out);
  interleave_rows(out.score_grads, block.stride, block.padded_keys / 2, block.queries,
                  reinterpret_cast<std::uint32_t*>(out.score_grads_panel));
}

void row_dots(const RowPair<float>& pair, float* delta) { run_in_lanes<RowDots>(pair, delta); }
void row_dots(const RowPair<BFloat16>& pair, float* delta) { run_in_lanes<RowDots>(pair, delta); }

}  // namespace sidestream::model::kernels
