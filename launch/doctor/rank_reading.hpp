// Everything that one rank can read by itself.
#pragma once

#include "comm/device/device_choice.hpp"
#include "comm/topology.hpp"
#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

// Before the rank is pinned to its share of the processors. `device`: what choose_device() found.
// Writes nothing and measures nothing.
RankFacts read_rank(const comm::DeviceFinding& device, const comm::Topology& topology);

}  // namespace sidestream::launch::doctor
