// Steps that are not replayed from a CUDA graph, though there is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/faults/fault.hpp"
#include "launch/recording/profile_plan.hpp"

namespace sidestream::launch {

// Why; empty: the step may be replayed. The same on every rank, whichever a fault is planted on: a
// graph is launched by all ranks or by none.
std::string why_eager(const ProfilePlan& plan, const std::vector<faults::Fault>& faults,
                      std::int64_t step);

}  // namespace sidestream::launch
