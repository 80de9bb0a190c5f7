// Rows of a tile lie far apart in its tensor, where no prefetcher of the processor finds the next
// one: kernels say which rows they will touch.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"

namespace sidestream::model::kernels {

enum class Access { kRead, kWrite };

template <Access access = Access::kRead>
SIDESTREAM_INLINE void expect_row(const void* row, std::int64_t bytes) {
  constexpr std::int64_t kLineBytes = 64;
  for (std::int64_t i = 0; i < bytes; i += kLineBytes)
    __builtin_prefetch(static_cast<const char*>(row) + i, access == Access::kWrite ? 1 : 0);
}

}  // namespace sidestream::model::kernels
