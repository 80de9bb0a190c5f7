// Makes the runs of a plan, one after the other.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "launch/process/stop_request.hpp"
#include "launch/verify/plan.hpp"
#include "launch/verify/run_progress.hpp"
#include "profiling/verify/failed_verification.hpp"
#include "profiling/verify/recorded_run.hpp"

namespace sidestream::launch {

struct RunsOfSides {
  std::vector<verify::RecordedRun> base;  // by block
  std::vector<verify::RecordedRun> fresh;
};

// A run failed: what it printed last, and its exit code; that of a gate where the new side failed
// by learning worse.
class RunFailure : public core::Error {
 public:
  // `output`: what the run printed last, as sentences behind the reason.
  RunFailure(const std::string& reason, const std::string& output, verify::FailedRun run,
             int exit_code)
      : core::Error(reason + ". " + output),
        reason_(reason),
        run_(std::move(run)),
        exit_code_(exit_code) {}
  const std::string& reason() const noexcept { return reason_; }
  const verify::FailedRun& run() const noexcept { return run_; }
  int exit_code() const noexcept { return exit_code_; }

 private:
  std::string reason_;
  verify::FailedRun run_;
  int exit_code_;
};

// Finished runs are kept. Empty when a stop was asked for: the run under way saves, ends and is
// made again next time. Throws RunFailure.
std::optional<RunsOfSides> make_runs(const VerifyOptions& options,
                                     const std::vector<PlannedRun>& plan, const StopRequest& stop,
                                     RunProgress& progress);

// Runs that only show where the time goes. One that fails takes nothing from the verdict: why is in
// `missing`.
struct ProfiledRuns {
  bool stopped = false;
  std::string missing = {};  // empty: all are there, or none was planned
};
ProfiledRuns make_profiles(const VerifyOptions& options, const std::vector<PlannedRun>& plan,
                           const StopRequest& stop, RunProgress& progress);

}  // namespace sidestream::launch
