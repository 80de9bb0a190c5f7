// What becomes of a rank that hangs or fails while a heartbeat is listened to: its watchdog ends
// the job and says so, and its last collectives and stacks are left in a folder of RUN/flight.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"
#include "launch/watch/flight_file.hpp"
#include "launch/watch/heartbeat.hpp"
#include "launch/watch/watchdog.hpp"

namespace sidestream::launch {

class RankGuard {
 public:
  // What messages say: whose records they are, and what gives a slow rank more time.
  struct Words {
    FlightFile::Of of = FlightFile::Of::kRun;
    Watchdog::MoreTime more_time = {};
  };

  // All outlive it. `folder`: of RUN/flight.
  RankGuard(Session& session, const Timeouts& limits, const Heartbeat& heartbeat,
            std::filesystem::path folder, const Words& words);
  // Of a run of `train`.
  RankGuard(Session& session, const Timeouts& limits, const Heartbeat& heartbeat,
            std::filesystem::path folder)
      : RankGuard(session, limits, heartbeat, std::move(folder), Words{}) {}

  // For what this rank has met by itself.
  void note_failure(const std::string& why) { on_failure_.write(why); }

  FlightFile& flight() noexcept { return flight_; }

 private:
  FlightFile flight_;
  FlightOnFailure on_failure_;
  Watchdog watchdog_;  // last: uses the rest
};

}  // namespace sidestream::launch
