// Whether two traces may be compared: what their runs say of themselves, else devices and
// operators.
#pragma once

#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/verify/comparability.hpp"

namespace sidestream::verify {

// All of them kRefused. Without the figures that Sidestream writes into a trace (FLOPs a token,
// tokens a step), sides that spend most of their time in operations that the other one does not
// have are taken for different models.
std::vector<Difference> differences_of(const analysis::Analysis& base,
                                       const analysis::Analysis& fresh);

// The same for two readings of one capture, a copied file too: first step and number of events.
std::string identity_of(const analysis::Analysis& all);

}  // namespace sidestream::verify
