// The sum of several ranks' buffers in rank order, element by element: ((r0 + r1) + r2) + ... No
// element's value depends on how a buffer was cut into slices, nor on the processor mode of the
// thread that happens to do it.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/dtype.hpp"

namespace sidestream::comm {

// Throws Error for anything but float32, bfloat16, float16 and int64.
void require_summable(core::DType dtype);

// Writes the sum of `inputs` (in their order, `count` elements each) to every one of `outputs`. An
// output may be one of the inputs; otherwise they do not overlap. 16-bit floats are added in fp32
// and rounded once, int64 wraps around.
void sum_in_order(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                  std::size_t count, core::DType dtype);

}  // namespace sidestream::comm
