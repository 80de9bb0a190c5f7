// The tables that the text and the Markdown of a verification share.
#pragma once

#include <vector>

#include "profiling/report/table.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::verify {

// Blocks, the change in parts, losses, and what differs.
std::vector<report::Table> verification_tables(const Verification& one);

// The budgets of both sides, and the longest operations of each with their roofline.
std::vector<report::Table> profile_tables(const Profiles& profiles);

// The change by the traces: parts of the budget, phases, operations, collectives by bucket.
std::vector<report::Table> trace_change_tables(const TraceChange& change);

// The decision log before this verification.
report::Table trials_table(const std::vector<Trial>& trials);

}  // namespace sidestream::verify
