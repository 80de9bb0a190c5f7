#include "launch/assembly/stage_guard.hpp"

#include <string>
#include <utility>

#include "core/checkpoint/run_directory.hpp"

namespace sidestream::launch {

StageGuard::StageGuard(Session& session, const TrainOptions& options, const Stage& stage)
    : step_(stage.step),
      heartbeat_(session.communicator()),
      flight_(checkpoint::RunPaths(options.run_dir).flight() / stage.name,
              session.communicator().rank(), session.flights(), heartbeat_),
      on_failure_(session.failure_hook(), flight_,
                  [&session](std::string line) { session.leave_word(std::move(line)); }),
      watchdog_(heartbeat_, session.communicator(), options.timeouts,
                [this, &session](const std::string& message) {
                  session.leave_word(flight_.write(message).line);
                  session.end_hanging_rank(message);
                }) {}

}  // namespace sidestream::launch
