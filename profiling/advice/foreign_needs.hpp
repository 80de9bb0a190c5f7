// What a trace lacks, for those whose trace is not Sidestream's: what to record instead of a flag
// that they do not have.
#pragma once

#include <string>

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

// `needs`: as rules and reports say it of our own runs.
std::string foreign_needs(const std::string& needs, Recorder recorder);

}  // namespace sidestream::advice
