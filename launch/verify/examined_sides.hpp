// The traces of both profiled runs, read.
#pragma once

#include <memory>
#include <string>

#include "launch/trace/examined_run.hpp"
#include "launch/verify/run_loop.hpp"

namespace sidestream::launch {

struct ExaminedSides {
  ExaminedRun base, fresh;
};

struct ProfileReading {
  std::unique_ptr<ExaminedSides> sides = {};  // null: none, and why is in `missing`
  std::string missing = {};
};

// Writes report/report.json into both run directories. What cannot be read is said, and costs no
// verdict.
ProfileReading read_profiles(const VerifyOptions& options, const ProfiledRuns& profiled);

}  // namespace sidestream::launch
