#include "launch/assembly/set_up_guard.hpp"

#include <string>
#include <utility>

#include "core/checkpoint/run_directory.hpp"

namespace sidestream::launch {

SetUpGuard::SetUpGuard(Session& session, const TrainOptions& options)
    : heartbeat_(session.communicator()),
      flight_(checkpoint::RunPaths(options.run_dir).flight() / "set_up",
              session.communicator().rank(), session.flights(), heartbeat_),
      on_failure_(session.failure_hook(), flight_,
                  [&session](std::string line) { session.leave_word(std::move(line)); }),
      watchdog_(heartbeat_, session.communicator(), options.timeouts,
                [this, &session](const std::string& message) {
                  session.leave_word(flight_.write(message).line);
                  session.end_hanging_rank(message);
                }) {}

}  // namespace sidestream::launch
