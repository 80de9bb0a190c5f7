// Flags that take less memory, each set with what it would make of a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/assembly/memory_advice.hpp"

namespace sidestream::launch {

struct MemoryProposal {
  std::string flags;       // as on a command line
  std::int64_t bytes = 0;  // needed with them
};

// In the order of way_out(): the last one is all that can be done.
std::vector<MemoryProposal> memory_proposals(const TrainOptions& options, const PlanOf& plan_of,
                                             const MemoryRoom& room);

}  // namespace sidestream::launch
