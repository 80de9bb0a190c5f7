// What is to be looked at before any mean, in words: one wording for the terminal, report.json, the
// page and a verification.
#pragma once

#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::report {

// A hang, and steps far longer than the others: a line each, without a full stop.
std::vector<std::string> fault_lines(const analysis::Analysis& all);

// "rank 1 is late in forward, costs the others 64.3 ms a step"; empty where no rank holds the
// others up for sure.
std::string late_rank_line(const analysis::Analysis& all);

// Both, the faults first.
std::vector<std::string> urgent_lines(const analysis::Analysis& all);

}  // namespace sidestream::report
