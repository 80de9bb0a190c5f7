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

// Rows of memory that will be read after what is worked on now: a kernel that computes from the
// cache fetches one of them with each of its own rows. Products overlap with nothing: they read
// what they need when they need it.
struct RowsAhead {
  const void* data = nullptr;
  std::int64_t stride_bytes = 0, bytes = 0, rows = 0;
};

// Into the second-level cache.
SIDESTREAM_INLINE void expect_later(const RowsAhead& ahead, std::int64_t row) {
  constexpr std::int64_t kLineBytes = 64;
  if (row >= ahead.rows) return;
  const char* first = static_cast<const char*>(ahead.data) + row * ahead.stride_bytes;
  for (std::int64_t i = 0; i < ahead.bytes; i += kLineBytes) __builtin_prefetch(first + i, 0, 2);
}

}  // namespace sidestream::model::kernels
