// A verification for people and scripts: the same figures as JSON, Markdown, and text of 100
// columns.
#pragma once

#include <string>

#include "profiling/report/table.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::verify {

// Schema 1, kind "verification"; the folder's README has the keys.
std::string verification_json(const Verification& one, const Decision& decision);
std::string verification_markdown(const Verification& one, const Decision& decision);
std::string verification_text(const Verification& one, const Decision& decision,
                              const report::TextStyle& style);

// The same of `sidestream-trace compare`: kind "comparison", keys `verification` and `trace` (null
// without traces of both sides).
std::string comparison_json(const Verification& one, const Decision& decision);

// "4.2x (95 % interval 2.6 to 6.7x)": base over new. Empty for one block.
std::string speed_up_text(const Verification& one);

}  // namespace sidestream::verify
