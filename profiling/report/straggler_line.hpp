// Which rank the others wait for, in a sentence: the same on the terminal and on a page.
#pragma once

#include <string>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::report {

// Empty where nobody could look: traces of one rank, or no collective that ranks have together.
std::string straggler_line(const analysis::Analysis& all);

}  // namespace sidestream::report
