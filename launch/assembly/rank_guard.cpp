#include "launch/assembly/rank_guard.hpp"

#include <utility>

namespace sidestream::launch {

RankGuard::RankGuard(Session& session, const Timeouts& limits, const Heartbeat& heartbeat,
                     std::filesystem::path folder, const Words& words)
    : flight_(std::move(folder), session.communicator().rank(), session.flights(), heartbeat,
              words.of),
      on_failure_(session.failure_hook(), flight_,
                  [&session](std::string line) { session.leave_word(std::move(line)); }),
      watchdog_(
          heartbeat, session.communicator(), limits,
          [this, &session](const std::string& message) {
            session.leave_word(flight_.write(message).line);
            session.end_hanging_rank(message);
          },
          words.more_time) {}

}  // namespace sidestream::launch
