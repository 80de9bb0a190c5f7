// A verification that ended before there was anything to compare: one of its runs failed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiling/verify/verification.hpp"

namespace sidestream::verify {

struct FailedRun {
  std::string name = {};     // "block 1, base"
  std::string command = {};  // as a shell takes it
  int exit_code = 0;
  std::vector<std::string> last_lines = {};  // that it printed
  std::string log = {};                      // file with all of them
};

struct FailedVerification {
  Settings settings = {};
  std::string version = {};                             // of the program
  std::map<std::string, std::string> environment = {};  // of a run that left one; empty: none did
  FailedRun run = {};
  std::string reason = {};
  int exit_code = 0;  // of the verification: a new side that learns to no number is kDiverged
};

// The verdict of one, in reports and in the decision log.
inline constexpr const char* kNoVerdict = "none: a run did not end";

// What is known, in the forms of a verification. The JSON has kind "verification", the verdict
// "none" and the key `failure`, which no other has.
std::string failure_json(const FailedVerification& one);
std::string failure_markdown(const FailedVerification& one);
std::string failure_text(const FailedVerification& one);
std::string failure_html(const FailedVerification& one);  // a page without scripts

}  // namespace sidestream::verify
