// What the traces of a run hold at all.
#pragma once

#include "profiling/advice/facts.hpp"

namespace sidestream::advice {

TraceContents trace_contents(const analysis::Analysis& all);

}  // namespace sidestream::advice
