#include "model/kernels/embedding.hpp"

#include <algorithm>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;

template <typename T>
SIDESTREAM_INLINE void add_embeddings_of(const T* __restrict token, const T* __restrict position,
                                         std::int64_t width, T* __restrict out) {
  if (position == nullptr) {
    std::copy_n(token, width, out);
    return;
  }
  for (std::int64_t i = 0; i < width; ++i)
    out[i] = T(static_cast<float>(token[i]) + static_cast<float>(position[i]));
}

template <typename T>
SIDESTREAM_INLINE void add_to(const T* __restrict x, std::int64_t n, float* __restrict sums) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<float>(x[i]);
}

template <typename T>
SIDESTREAM_INLINE void accumulate_of(const RowGradients<T>& g, float* __restrict sums,
                                     T* __restrict target) {
  for (std::int64_t i = 0; i < g.width; ++i) sums[i] = static_cast<float>(target[i]);
  for (std::int64_t r = 0; r < g.count; ++r) add_to(g.grads + g.rows[r] * g.width, g.width, sums);
  for (std::int64_t i = 0; i < g.width; ++i) target[i] = T(sums[i]);
}

}  // namespace

SIDESTREAM_VECTORIZED void add_embeddings(const float* token, const float* position,
                                          std::int64_t width, float* out) {
  add_embeddings_of(token, position, width, out);
}
SIDESTREAM_VECTORIZED void add_embeddings(const BFloat16* token, const BFloat16* position,
                                          std::int64_t width, BFloat16* out) {
  add_embeddings_of(token, position, width, out);
}

SIDESTREAM_VECTORIZED void accumulate_rows(const RowGradients<float>& gradients, float* sums,
                                           float* target) {
  accumulate_of(gradients, sums, target);
}
SIDESTREAM_VECTORIZED void accumulate_rows(const RowGradients<BFloat16>& gradients, float* sums,
                                           BFloat16* target) {
  accumulate_of(gradients, sums, target);
}

}  // namespace sidestream::model::kernels
