// A tensor times a number that lies on the device.
#pragma once

#include <cstdint>

#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

template <typename T>
struct ScaledRange {
  T* values;
  const float* factor;
  std::int64_t count;
};

// Elements [index * kChunk, (index + 1) * kChunk) below count.
template <Access kAccess, typename T>
SIDESTREAM_KERNEL void scale_chunk(const ScaledRange<T>& range, std::int64_t index) {
  const Share share{.thread = 0, .threads = 1, .width = range.count - index * kChunk<T>};
  if (share.width <= 0) return;
  if constexpr (kAccess == Access::kVector) {
    if (share.width < kChunk<T>) return scale_chunk<Access::kElement>(range, index);
  }
  HeldRow<T, kChunk<T>, kAccess> held;
  held.load(range.values + index * kChunk<T>, share);
  for (float& value : held.at) value *= *range.factor;
  held.store(range.values + index * kChunk<T>, share);
}

}  // namespace sidestream::model::device
