// What happens to a block of a product while it is still in the cache: it arrives as fp32 and
// leaves as T, with bias and GELU on the way. Element types: float and core::BFloat16.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "model/kernels/prefetch.hpp"

namespace sidestream::model::kernels {

struct Tile {
  const float* data = nullptr;
  std::int64_t stride = 0, rows = 0, columns = 0;
  RowsAhead ahead = {};  // a row with each of the tile's
};

// Some of its rows, with what is to be fetched beside them.
inline Tile rows_of(const Tile& tile, std::int64_t first, std::int64_t count) {
  RowsAhead ahead = tile.ahead;
  ahead.data = static_cast<const char*>(ahead.data) + first * ahead.stride_bytes;
  ahead.rows -= first;
  return {.data = tile.data + first * tile.stride,
          .stride = tile.stride,
          .rows = count,
          .columns = tile.columns,
          .ahead = ahead};
}

// Rows of a tensor that a tile maps to.
template <typename T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

void store(const Tile& tile, Rows<float> out);
void store(const Tile& tile, Rows<core::BFloat16> out);

// Past the caches (non-temporal stores) where rows begin at cache lines and the processor has
// AVX2, for bf16 AVX512_BF16: for what is not read again soon, and comes from memory
// otherwise. Nobody else may read it before this thread has called finish_stores_past_caches().
void store_past_caches(const Tile& tile, Rows<float> out);
void store_past_caches(const Tile& tile, Rows<core::BFloat16> out);
void finish_stores_past_caches();  // a store fence

// Whether each of these rows begins at a line of the cache.
template <typename T>
bool begin_at_lines(const Rows<T>& rows) {
  constexpr std::int64_t kLine = 64, kBytes = sizeof(T);
  return reinterpret_cast<std::uintptr_t>(rows.data) % kLine == 0 &&
         rows.stride * kBytes % kLine == 0;
}

void add(const Tile& tile, Rows<float> out);
void add(const Tile& tile, Rows<core::BFloat16> out);

// Row i is multiplied by factors[i].
void store_scaled(const Tile& tile, const float* factors, Rows<float> out);
void store_scaled(const Tile& tile, const float* factors, Rows<core::BFloat16> out);

void store_with_bias(const Tile& tile, const float* bias, Rows<float> out);
void store_with_bias(const Tile& tile, const core::BFloat16* bias, Rows<core::BFloat16> out);

// before = tile + bias, activation = GELU(before).
template <typename T>
struct GeluRows {
  Rows<T> before, activation;
};
void store_with_bias_gelu(const Tile& tile, const float* bias, const GeluRows<float>& out);
void store_with_bias_gelu(const Tile& tile, const core::BFloat16* bias,
                          const GeluRows<core::BFloat16>& out);

// The tile is the gradient of the activation. Writes the gradient of what came before it and the
// activation again (it was not kept), and adds the columns' sums of the gradient to bias_grad.
template <typename T>
struct GeluBackwardRows {
  Rows<const T> before;
  Rows<T> grad, activation;
  float* bias_grad = nullptr;
};
void gelu_backward(const Tile& tile, const GeluBackwardRows<float>& rows);
void gelu_backward(const Tile& tile, const GeluBackwardRows<core::BFloat16>& rows);

// sums[c] += sum over rows of x[r][c], rows in order.
void add_column_sums(Rows<const float> x, std::int64_t rows, std::int64_t columns, float* sums);
void add_column_sums(Rows<const core::BFloat16> x, std::int64_t rows, std::int64_t columns,
                     float* sums);

}  // namespace sidestream::model::kernels
