// The part of causal attention between its products: scores to probabilities, and back. Element
// types: float and core::BFloat16.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/dtype.hpp"
#include "model/kernels/prefetch.hpp"

namespace sidestream::model::kernels {

// A block of scores q k^T (unscaled): queries first_query .. first_query + queries - 1 as rows,
// keys from 0 as columns.
struct ScoreRows {
  float* scores = nullptr;
  std::int64_t stride = 0, queries = 0, first_query = 0;
  std::int64_t columns = 0;  // keys that the next product reads, a multiple of 16: those past the
                             // query become 0
  float scale = 1;
  std::array<RowsAhead, 3> ahead = {};  // a row of each with each query
};

template <typename T>
struct Weights {
  T* data =
      nullptr;  // [queries, columns]: exp(scale (score - highest)); for float the scores themselves
  std::int64_t stride = 0;
  float* inverse_sum = nullptr;  // [queries]: what makes probabilities of weights
  float* log_sum = nullptr;  // [queries]: log of the sum of exp(scale score), for the backward pass
};
void softmax_causal(const ScoreRows& rows, const Weights<float>& weights);
void softmax_causal(const ScoreRows& rows, const Weights<core::BFloat16>& weights);

// A block of scores transposed: keys as rows, queries as columns, both counted from the block's
// first key. Row k and column q are visible where q >= k.
// `queries` is a multiple of 16.
struct ScoreColumns {
  float* scores = nullptr;             // [padded_keys, queries], of which `keys` rows hold numbers
  float* probability_grads = nullptr;  // the same for v dout^T
  std::int64_t stride = 0, keys = 0, padded_keys = 0, queries = 0;
  const float* log_sum = nullptr;  // [queries]
  const float* delta = nullptr;    // [queries]: sum over the head of out * dout
  float scale = 1;
  std::array<RowsAhead, 5> ahead = {};  // a row of each with each key
};

template <typename T>
struct ScoreGradients {
  T* probabilities =
      nullptr;  // [keys, queries], rows `stride` apart; for float all of these are the block's own
  T* score_grads = nullptr;  // the same: gradient of the unscaled scores
  T* score_grads_panel =
      nullptr;  // the same as a panel of kernels/pack.hpp; for float the score_grads themselves
};
void softmax_causal_backward(const ScoreColumns& block, const ScoreGradients<float>& out);
void softmax_causal_backward(const ScoreColumns& block, const ScoreGradients<core::BFloat16>& out);

// delta[i] = sum of a[i] * b[i], rows `stride` apart.
template <typename T>
struct RowPair {
  const T *a = nullptr, *b = nullptr;
  std::int64_t stride = 0, rows = 0, width = 0;
};
void row_dots(const RowPair<float>& pair, float* delta);
void row_dots(const RowPair<core::BFloat16>& pair, float* delta);

}  // namespace sidestream::model::kernels
