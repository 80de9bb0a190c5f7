// Ranks say hello through a communicator, and are timed.
#pragma once

#include "comm/communicator.hpp"
#include "launch/doctor/job_facts.hpp"

namespace sidestream::launch::doctor {

// Collective; blocks. Sums numbers of all ranks and looks at the result, times barriers, then
// all-reduces of 64 MB for about `seconds`. The same on all ranks but for the barrier's time.
// Throws what the communicator throws.
LinkFacts try_link(comm::Communicator& communicator, double seconds);

}  // namespace sidestream::launch::doctor
