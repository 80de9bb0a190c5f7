// What somebody has to know who reads the verdict of a verification: the same words in every view.
#pragma once

#include <string>
#include <vector>

#include "profiling/verify/verification.hpp"

namespace sidestream::verify {

// Where traces and timed steps disagree, or where one side alone was profiled: the parts of the
// change are of the traces. Empty: neither.
std::string trace_remark(const Verification& one);

// That, clocks that differ between the sides, and what others took of the processors. Each is a
// sentence without its full stop.
std::vector<std::string> remarks_of(const Verification& one);

}  // namespace sidestream::verify
