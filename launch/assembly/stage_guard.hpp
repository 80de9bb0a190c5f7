// Watches what a rank does before its first step and after its last one: one that hangs there ends
// the job, says so, and leaves its stacks in RUN/flight/set_up or RUN/flight/end.
//
//   std::optional<StageGuard> guard(std::in_place, session, options, StageGuard::set_up());
//   guard->beat(Phase::kData); ...  // each part has the whole time
//   guard.reset();                  // training has a watchdog of its own
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "launch/assembly/rank_guard.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"
#include "launch/watch/heartbeat.hpp"

namespace sidestream::launch {

class StageGuard {
 public:
  struct Stage {
    std::string name;
    std::int64_t step;
  };
  // With --timeout-setup.
  static Stage set_up() { return {.name = "set_up", .step = 0}; }
  // With --timeout-step, after this one.
  static Stage end_after(std::int64_t step) {
    return {.name = "end", .step = std::max<std::int64_t>(1, step)};
  }

  // All outlive it.
  StageGuard(Session& session, const TrainOptions& options, const Stage& stage);

  void beat(ranges::Phase phase) noexcept { heartbeat_.beat(phase, step_); }

 private:
  std::int64_t step_;
  Heartbeat heartbeat_;
  RankGuard guard_;  // last: uses the heartbeat
};

}  // namespace sidestream::launch
