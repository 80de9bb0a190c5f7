// The figures that need a look at every event.
#pragma once

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

// `recorded` is the number of plain steps of all ranks: what sums over those are divided by, but
// for what only a profiler records. Returns where in the timeline they can be seen.
Places gather_events(const analysis::Analysis& all, double recorded, Facts& facts);

// One matrix product of an operator, from its "Input Dims".
struct Product {
  double flops = 0;
  bool aligned = true;  // every extent is a multiple of 8
  int divisor = 64;     // largest power of two, up to 64, that divides every extent
};
// Nothing when the operator is no product or the shapes do not fit.
std::optional<Product> product_of(std::string_view operator_name, std::string_view input_dims);

}  // namespace sidestream::advice
