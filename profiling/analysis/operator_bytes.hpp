// What an operator reads and writes at least: every input once, and what comes out, whose shape
// follows from those of the inputs.
#pragma once

#include <optional>
#include <string_view>

#include "profiling/analysis/operator_inputs.hpp"

namespace sidestream::analysis {

struct MovedBytes {
  double amount = 0;
  // Nothing is known of the result, as of an operator that is not in the list: the inputs alone.
  bool at_least = false;
};

// `flops` of a product give the size of its result. Nothing when no type is known.
std::optional<MovedBytes> bytes_of_call(std::string_view name, const OperatorInputs& in,
                                        const std::optional<double>& flops);

}  // namespace sidestream::analysis
