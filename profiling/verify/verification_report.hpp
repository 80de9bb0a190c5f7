// A verification for people and scripts: the same figures as JSON, Markdown, and text of 100
// columns.
#pragma once

#include <string>

#include "profiling/report/table.hpp"
#include "profiling/verify/trace_change.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::verify {

// Schema 1, kind "verification"; the folder's README has the keys.
std::string verification_json(const Verification& one, const Decision& decision);
std::string verification_markdown(const Verification& one, const Decision& decision);
std::string verification_text(const Verification& one, const Decision& decision,
                              const report::TextStyle& style);

// The same with what the traces say: kind "comparison", keys `verification` and `trace` (null
// without traces of both sides).
std::string comparison_json(const Verification& one, const Decision& decision,
                            const TraceChange* traces);
std::string trace_change_text(const TraceChange& change, const report::TextStyle& style);

// The tables that text and Markdown share.
std::vector<report::Table> verification_tables(const Verification& one);

}  // namespace sidestream::verify
