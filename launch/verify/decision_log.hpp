// The decision log: one line a verification, with what is needed to believe or repeat it.
#pragma once

#include <filesystem>
#include <vector>

#include "profiling/verify/failed_verification.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

// What was decided on: the proof of a verification is in its reports, and has a line of its own.
enum class Subject { kVerification, kProof };

// Appends {time, command, folder of the reports, sides, proof: whether it is one, version,
// environment, verdict, accepted, reason}, unless the newest line on these reports and this subject
// says the same. Throws core::Error with the system's text.
void append_decision(const std::filesystem::path& log, const std::filesystem::path& reports,
                     const verify::Verification& one, const verify::Decision& decision,
                     Subject subject = Subject::kVerification);

// The same of a verification that ended before there was anything to compare, for the new side
// cannot be accepted.
void append_rejection(const std::filesystem::path& log, const std::filesystem::path& reports,
                      const verify::FailedVerification& one);

// What is in the log, the oldest first, without the verification in `reports` and its proof: of a
// folder that was reported several times the last line of each counts. Empty when there is no log;
// a line that is none of ours is passed over.
std::vector<verify::Trial> read_decisions(const std::filesystem::path& log,
                                          const std::filesystem::path& reports);

}  // namespace sidestream::launch
