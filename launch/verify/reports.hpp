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

// The call that makes a verification.
struct ProgramCall {
  std::string command = {};
  std::string version = {};  // of the program
};

// The same when a run failed: the four files say what is known, and the decision log that there is
// no verdict. Returns the exit code.
int report_failure(const VerifyOptions& options, const OutputFolder& folder,
                   const RunFailure& failure, const ProgramCall& call);

}  // namespace sidestream::launch
