// The decision log: one line a verification, with what is needed to believe or repeat it.
#pragma once

#include <filesystem>

#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

// Appends {time, command, environment, folder of the reports, sides, figures, accepted, reason}.
// Throws core::Error with the system's text.
void append_decision(const std::filesystem::path& log, const std::filesystem::path& reports,
                     const verify::Verification& one, const verify::Decision& decision);

}  // namespace sidestream::launch
