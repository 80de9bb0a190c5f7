// What an operator reads and writes at least: every input once, and what comes out, whose shape
// follows from those of the inputs.
#pragma once

#include <optional>
#include <string_view>

#include "profiling/analysis/operator_inputs.hpp"

namespace sidestream::analysis {

// `flops` of a product give the size of its result. Of an operator that is not in the list nothing
// is known of its result: the inputs alone, a lower bound. Nothing when no type is known.
std::optional<double> bytes_of_call(std::string_view name, const OperatorInputs& in,
                                    const std::optional<double>& flops);

}  // namespace sidestream::analysis
