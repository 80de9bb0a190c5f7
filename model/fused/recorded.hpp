// Fused operators in timelines: one event each, with the shapes of its tensors, as LibTorch's own
// operators have. Costs a branch while no profiler runs. Names and order of the inputs are read by
// profiling/analysis/operator_work.
#pragma once

#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

namespace sidestream::model::fused {

// RECORD_FUNCTION("sidestream::linear", Inputs({x, weight}));
using Inputs = std::vector<c10::IValue>;

}  // namespace sidestream::model::fused
