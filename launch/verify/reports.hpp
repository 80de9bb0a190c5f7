// The reports of a verification: what its runs left, judged, explained and written.
#pragma once

#include <string>

#include "launch/verify/examined_sides.hpp"
#include "launch/verify/output_folder.hpp"
#include "launch/verify/proof_runs.hpp"
#include "launch/verify/run_loop.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {

struct VerificationRuns {
  RunsOfSides timed;
  ProfileReading profiled;
  std::optional<ProofRuns> proof = {};
};

// Writes report.{html,json,md,txt}, adds to the decision log (the proof first, as a decision of its
// own), and prints the text. Throws core::Error with the system's
// text when a file cannot be written. Returns the exit code.
int write_reports(const VerifyOptions& options, const OutputFolder& folder,
                  const VerificationRuns& runs, const std::string& command);

// Says why there are no reports. A new side that learns to no number is a line of the decision log.
// Returns the exit code.
int report_failure(const VerifyOptions& options, const RunFailure& failure,
                   const std::string& command);

}  // namespace sidestream::launch
