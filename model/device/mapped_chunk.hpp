// A chunk of a range, each element through a function.
#pragma once

#include <cstdint>

#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

// to[i] = map(from[i]) for the elements [index * kChunk, (index + 1) * kChunk) below count; from
// and to may be the same. With Access::kVector the last ones, too few for a chunk, go one by one.
template <Access kAccess, typename T, typename Map>
SIDESTREAM_KERNEL void map_chunk(const T* from, T* to, std::int64_t count, std::int64_t index,
                                 const Map& map) {
  const Share share{.thread = 0, .threads = 1, .width = count - index * kChunk<T>};
  if (share.width <= 0) return;
  if constexpr (kAccess == Access::kVector) {
    if (share.width < kChunk<T>) return map_chunk<Access::kElement>(from, to, count, index, map);
  }
  HeldRow<T, kChunk<T>, kAccess> held;
  held.load(from + index * kChunk<T>, share);
  for (float& value : held.at) value = map(value);
  held.store(to + index * kChunk<T>, share);
}

}  // namespace sidestream::model::device
