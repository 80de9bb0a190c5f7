// Runs that prove what the advice says first of the base: that it waits for input.
#pragma once

#include <optional>
#include <string>

#include "launch/trace/examined_run.hpp"
#include "launch/verify/run_loop.hpp"

namespace sidestream::launch {

struct ProofRuns {
  std::string finding;  // title of the rule
  std::optional<double> bound_pct = {};
  RunsOfSides sides;  // the base, and the base on one batch
};

struct ProofOutcome {
  bool stopped = false;
  std::optional<ProofRuns> proof = {};
};

// Nothing is run where the first finding is of another kind, with --prove off, or where a side sets
// --fix-batch itself. A run that fails takes nothing from the verdict: it is said, and there is no
// proof.
ProofOutcome make_proof(const VerifyOptions& options, const ExaminedRun& base,
                        const StopRequest& stop, RunProgress& progress);

}  // namespace sidestream::launch
