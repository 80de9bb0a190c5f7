// Products in the fp32 units of AVX2, eight lanes each: the right factor B lies in strips, as many
// of its columns side by side as a tile of C has whose sums stay in registers, and each strip
// passes many rows of A while it is in a first-level cache.
#pragma once

#include <cstdint>

#include "model/kernels/block_product.hpp"

namespace sidestream::model::kernels {

constexpr std::int64_t kFloatStripColumns = 16;
constexpr std::int64_t kFloatStripDepth = 384;  // at most: 24 kB

struct FloatStripsShape {
  std::int64_t k = 0, n = 0;
};

// The strips of B [k, n], whose rows lie `stride` apart, one after the other: each is
// [k][kFloatStripColumns], the last one with zeros from n on. bf16 is widened on the way.
void pack_float_strips(const float* b, std::int64_t stride, const FloatStripsShape& shape,
                       float* strips);
void pack_float_strips(const core::BFloat16* b, std::int64_t stride, const FloatStripsShape& shape,
                       float* strips);

// The same of B transposed: [n, k]. k is at most kFloatStripDepth.
void pack_float_strips_transposed(const float* b_t, std::int64_t stride,
                                  const FloatStripsShape& shape, float* strips);
void pack_float_strips_transposed(const core::BFloat16* b_t, std::int64_t stride,
                                  const FloatStripsShape& shape, float* strips);

struct FloatStripProduct {
  std::int64_t m = 0, k = 0;
  const float* a = nullptr;  // [m, k]
  std::int64_t a_stride = 0;
  const float* strip = nullptr;
  std::int64_t columns = 0;  // of C; what lies beside them stays as it is
  float* c = nullptr;        // [m, columns]
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::kNo;
};

// Each element is one fp32 sum over k in order, which is added to C where it accumulates. On any
// processor.
void multiply_float_strip(const FloatStripProduct& product);

}  // namespace sidestream::model::kernels
