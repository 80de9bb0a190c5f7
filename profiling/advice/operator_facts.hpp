// The figures that need to know which operator is inside which, and what it started on the device.
#pragma once

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

struct OperatorFacts {
  bool fused_update = false;  // of the optimizer
  double passes_ns = 0;
  std::optional<LayoutCopyFacts> layout_copies;
  std::optional<HeavyOperatorFacts> heavy;
  std::optional<Place> heavy_place;
};

// Times are of a step: of those that the operations are of.
OperatorFacts gather_operators(const analysis::Analysis& all);

}  // namespace sidestream::advice
