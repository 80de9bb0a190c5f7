// A tensor times a number that lies on the device.
#pragma once

#include <cstdint>

#include "model/device/kernel_function.hpp"
#include "model/device/mapped_chunk.hpp"

namespace sidestream::model::device {

template <typename T>
struct ScaledRange {
  T* values;
  const float* factor;
  std::int64_t count;
};

template <Access kAccess, typename T>
SIDESTREAM_KERNEL void scale_chunk(const ScaledRange<T>& range, std::int64_t index) {
  map_chunk<kAccess>(range.values, range.values, range.count, index,
                     [factor = *range.factor](float value) { return value * factor; });
}

}  // namespace sidestream::model::device
