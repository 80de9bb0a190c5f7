// Fused operators in timelines: one event each, with the shapes of its tensors, as LibTorch's own
// operators have. Costs a branch while no profiler runs. Names and order of the inputs are read by
// profiling/analysis/operator_work.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/SequenceNumber.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

namespace sidestream::model::fused {

// RECORD_FUNCTION("sidestream::linear", Inputs({x, weight}), node_number());
using Inputs = std::vector<c10::IValue>;

// At the beginning of Function::forward: the number of the autograd node that was made for this
// call. It is in the event of the node's backward too, and ties the two together.
inline std::int64_t node_number() {
  return static_cast<std::int64_t>(at::sequence_number::peek()) - 1;
}

}  // namespace sidestream::model::fused
