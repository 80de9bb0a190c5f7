// Compares the calls of all ranks before any data of them moves: for --check-collectives, and for
// ranks that share no board.
#pragma once

#include <string>
#include <vector>

#include "comm/call.hpp"

namespace sidestream::comm {

// A call as text for the exchange: what has to be the same on all ranks.
std::string call_stamp(const Call& call);

// Nothing where all stamps, in rank order, are the same; else one message, the same on every rank,
// that names the odd ranks and what they call.
std::string call_difference(const std::vector<std::string>& stamps);

}  // namespace sidestream::comm
