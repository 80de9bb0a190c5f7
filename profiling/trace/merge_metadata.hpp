// What a merged trace says about itself, beside its events: the clock, and in the object
// "sidestream" how many ranks it is of. A file of one rank can be read again, so it says of the
// rank what that rank's own files do: its number, its devices, what the run knows of itself, and
// what the recorder lost.
#pragma once

#include <string>
#include <vector>

#include "profiling/trace/merge.hpp"

namespace sidestream::trace {

// Members of the object of the file. `cuts` as in merge_traces().
std::string merge_metadata(const TraceSet& set, const std::vector<MergeCut>& cuts);

}  // namespace sidestream::trace
