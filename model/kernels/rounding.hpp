// fp32 to bf16, to nearest even: by the processor's own instruction where it has one (AVX512_BF16),
// which counts denormal numbers as zero, as training does everywhere else. Loops that compute and
// round are not vectorised well: they compute into fp32 first, a stretch that stays in the
// first-level cache.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {

void round_row(const float* x, std::int64_t n, core::BFloat16* out);

// For float the source is the target.
SIDESTREAM_INLINE void round_row(const float*, std::int64_t, float*) {}

constexpr std::int64_t kStretch = 512;  // elements between computing and rounding

// compute(target, first, count) gives `count` numbers from element `first` on.
template <typename Compute>
SIDESTREAM_INLINE void compute_row(float* out, std::int64_t n, Compute compute) {
  compute(out, std::int64_t{0}, n);
}
template <typename Compute>
SIDESTREAM_INLINE void compute_row(core::BFloat16* out, std::int64_t n, Compute compute) {
  alignas(64) float stretch[kStretch];
  for (std::int64_t first = 0; first < n; first += kStretch) {
    const std::int64_t count = n - first < kStretch ? n - first : kStretch;
    compute(static_cast<float*>(stretch), first, count);
    round_row(stretch, count, out + first);
  }
}

// out[i] = element(i). What it reads is not in `out`, but for element i itself.
template <typename T, typename Element>
SIDESTREAM_INLINE void compute_elements(T* out, std::int64_t n, Element element) {
  compute_row(
      out,
      n, [=](float* target, std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) target[i] = element(first + i);
      });
}

}  // namespace sidestream::model::kernels
