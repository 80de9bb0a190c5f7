#include "model/kernels/rounding.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sidestream::model::kernels {
namespace {

using core::BFloat16;
using RoundRow = void (*)(const float*, std::int64_t, BFloat16*);

SIDESTREAM_VECTORIZED void round_by_bits(const float* __restrict x, std::int64_t n,
                                         BFloat16* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = BFloat16(x[i]);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void round_by_instruction(
    const float* x, std::int64_t n, BFloat16* out) {
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const auto rounded =
        (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + 16), _mm512_loadu_ps(x + i));
    _mm512_storeu_si512(out + i, rounded);
  }
  for (; i < n; i += 16) {
    const std::int64_t left = n - i;
    const auto lanes = static_cast<__mmask16>(left < 16 ? (1 << left) - 1 : 0xFFFF);
    const auto rounded = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, x + i));
    _mm256_mask_storeu_epi16(out + i, lanes, rounded);
  }
}

RoundRow best_way() {
  return __builtin_cpu_supports("avx512bf16") != 0 ? round_by_instruction : round_by_bits;
}
#else
RoundRow best_way() { return round_by_bits; }
#endif

}  // namespace

void round_row(const float* x, std::int64_t n, BFloat16* out) {
  static const RoundRow round = best_way();
  round(x, n, out);
}

}  // namespace sidestream::model::kernels
