// The square root of a float in a function that processor and GPU share.
#pragma once

#include "core/base/vectorize.hpp"

namespace sidestream::core {

// The builtin on a processor, because a clone would call std::sqrt instead of inlining it.
SIDESTREAM_INLINE float square_root(float value) {
#if defined(__CUDA_ARCH__)
  return sqrtf(value);
#else
  return __builtin_sqrtf(value);
#endif
}

}  // namespace sidestream::core
