// 16 bytes of memory, the longest load and store that a thread of a GPU has.
#pragma once

#include "core/base/dtype.hpp"
#include "core/base/float16.hpp"
#include "core/base/vectorize.hpp"

namespace sidestream::model::device {

constexpr int kChunkBytes = 16;

template <typename T>
constexpr int kChunk = kChunkBytes / static_cast<int>(sizeof(T));

template <typename T>
struct alignas(16) Chunk {
  T at[kChunk<T>];
};

// data: at a multiple of 16 bytes.
template <typename T>
SIDESTREAM_INLINE Chunk<T> load_chunk(const T* data) {
  return *reinterpret_cast<const Chunk<T>*>(data);
}

// On the device by name of the instruction: left alone, nvcc takes some of these stores apart into
// elements.
template <typename T>
SIDESTREAM_INLINE void store_chunk(T* data, const Chunk<T>& chunk) {
#if defined(__CUDA_ARCH__)
  __stwb(reinterpret_cast<uint4*>(data), __builtin_bit_cast(uint4, chunk));
#else
  *reinterpret_cast<Chunk<T>*>(data) = chunk;
#endif
}

}  // namespace sidestream::model::device
