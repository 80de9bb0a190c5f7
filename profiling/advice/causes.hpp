// Why an operation does not come nearer to its roof, in words, from what was measured of it.
#pragma once

#include <string>

#include "profiling/advice/operation_kind.hpp"
#include "profiling/advice/roofline.hpp"

namespace sidestream::advice {

// Fills `cause`, and `bound` where the cause is what bounds. Nothing is guessed: without evidence
// the cause says what would tell, or stays empty.
void explain(RooflinePoint& point, const ComputedOn& computed, const Facts& facts);

}  // namespace sidestream::advice
