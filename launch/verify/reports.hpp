// The reports of a verification: what its runs left, judged, explained and written.
#pragma once

#include <string>

#include "launch/verify/output_folder.hpp"
#include "launch/verify/run_loop.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

struct VerificationRuns {
  RunsOfSides timed;
  ProfiledRuns profiled;
};

// Writes report.{html,json,md,txt}, adds to the decision log, and prints the text. Traces that
// cannot be read are said in the reports and cost no verdict. Throws core::Error with the system's
// text when a file cannot be written. Returns the exit code.
int write_reports(const VerifyOptions& options, const OutputFolder& folder,
                  const VerificationRuns& runs, const std::string& command);

}  // namespace sidestream::launch
