// Watches what a rank does before its first step: one that hangs there ends the job in
// --timeout-setup, says so, and leaves its stacks in RUN/flight/set_up.
//
//   std::optional<SetUpGuard> guard(std::in_place, session, options);
//   guard->beat(Phase::kData); ...  // each part has the whole time
//   guard.reset();                  // training has a watchdog of its own
#pragma once

#include "launch/options/train_options.hpp"
#include "launch/process/heartbeat.hpp"
#include "launch/process/program.hpp"
#include "launch/process/watchdog.hpp"
#include "launch/recording/flight_file.hpp"

namespace sidestream::launch {

class SetUpGuard {
 public:
  // All outlive it.
  SetUpGuard(Session& session, const TrainOptions& options);

  void beat(ranges::Phase phase) noexcept { heartbeat_.beat(phase, 0); }

 private:
  Heartbeat heartbeat_;
  FlightFile flight_;
  FlightOnFailure on_failure_;
  Watchdog watchdog_;  // last: uses the rest
};

}  // namespace sidestream::launch
