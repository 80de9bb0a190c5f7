#pragma once

#include <string>
#include <vector>

#include "profiling/record/verdict.hpp"

namespace sidestream::record {

// What a person reads at the end of a run, line by line: the shares of a step and what bounds it, a
// table of phases by rank, and the rank that is late.
std::vector<std::string> lines_of(const RunVerdict& verdict);

}  // namespace sidestream::record
