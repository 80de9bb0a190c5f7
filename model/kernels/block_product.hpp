// A small matrix product on raw blocks, C = A B or C += A B, in fp32 units.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace sidestream::model::kernels {

enum class Accumulate { kNo, kYes };

template <typename T>
struct BlockProduct {
  std::int64_t m = 0, n = 0, k = 0;  // k even for bf16
  const T* a = nullptr;              // [m, k]
  std::int64_t a_stride = 0;
  const T* b = nullptr;  // a panel of kernels/pack.hpp, b_stride its width
  std::int64_t b_stride = 0;
  float* c = nullptr;  // [m, n]
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::kNo;
};

bool has_amx() noexcept;  // tiles of bf16
bool has_avx512() noexcept;
bool has_avx512_bf16() noexcept;  // rounding to bf16 beside it
bool has_avx2() noexcept;

bool has_amd_avx512() noexcept;  // on a processor of AMD's: Zen 4 and later
bool has_amd_avx2() noexcept;    // the same without AVX-512: up to Zen 3

// Whether units for bf16 reach more than those for fp32: AMX, and the dot products of AVX-512 on
// AMD's cores (twice as many by https://uops.info). On Intel's the dot products reach half.
bool has_faster_bf16() noexcept;

// On any processor; on x86-64 a tile of C is in registers, fourteen rows by 32 columns with AVX-512
// and six by sixteen with AVX2. bf16 is widened on the way, which is exact. Each element of C is a
// sum over k in order, in one fp32 number per 256 of k.
void multiply_widened(const BlockProduct<float>& product);
void multiply_widened(const BlockProduct<core::BFloat16>& product);

// The same in two steps, for products whose rows of A many columns of B pass.

constexpr std::int64_t kWidenedDepth = 256;
constexpr std::int64_t kWidenedStride =
    kWidenedDepth + 16;  // a power of two would map rows to few sets of the cache

// Columns of A in fp32: rows of `target` are kWidenedStride apart for multiply_part(), which takes
// at most kWidenedDepth columns.
void widen_rows(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                float* target, std::int64_t target_stride = kWidenedStride);
void widen_rows(const core::BFloat16* a, std::int64_t stride, std::int64_t rows,
                std::int64_t columns, float* target, std::int64_t target_stride = kWidenedStride);

enum class PanelLayout {
  kRows,   // as a matrix lies
  kPacked  // as kernels/pack.hpp makes it: bf16 in pairs
};

template <typename T>
struct PartProduct {
  std::int64_t m = 0, n = 0, k = 0;  // k at most kWidenedDepth, even for packed bf16
  const float* a = nullptr;          // of widen_rows
  const T* b = nullptr;              // [k, n]
  std::int64_t b_stride = 0;
  PanelLayout layout = PanelLayout::kRows;
  float* c = nullptr;  // [m, n]
  std::int64_t c_stride = 0;
  Accumulate accumulate = Accumulate::kNo;
};

// One sum in fp32 for each element of C.
void multiply_part(const PartProduct<float>& product);
void multiply_part(const PartProduct<core::BFloat16>& product);

}  // namespace sidestream::model::kernels
