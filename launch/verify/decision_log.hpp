// The decision log: one line a verification, with what is needed to believe or repeat it.
#pragma once

#include <filesystem>
#include <vector>

#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

// Appends {time, command, environment, folder of the reports, sides, figures, accepted, reason}.
// Throws core::Error with the system's text.
void append_decision(const std::filesystem::path& log, const std::filesystem::path& reports,
                     const verify::Verification& one, const verify::Decision& decision);

// The same of a verification that ended before there was anything to compare, for the new side
// cannot be accepted.
void append_rejection(const std::filesystem::path& log, const std::filesystem::path& reports,
                      const verify::Settings& settings, const std::string& reason);

// What is in the log, the oldest first, without the verification in `reports`: of a folder that was
// reported several times the last line counts. Empty when there is no log; a line that is none of
// ours is passed over.
std::vector<verify::Trial> read_decisions(const std::filesystem::path& log,
                                          const std::filesystem::path& reports);

}  // namespace sidestream::launch
