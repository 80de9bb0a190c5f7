// Ends a rank that does nothing any more outside of collectives, which have deadlines of their own:
// a reader that hangs, a dead file system, a lock that is never released.
//
// A part of a step (a phase), a save and an evaluation each have their deadline, counted from the
// last heartbeat while no collective of this rank is in flight. So has the writing of a checkpoint
// beside training. A pause of the whole process does not count.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "launch/options/train_options.hpp"
#include "launch/watch/heartbeat.hpp"

namespace sidestream::launch {

class Watchdog {
 public:
  using OnTimeout = std::function<void(const std::string& message)>;
  // What gives each more time, for messages; static.
  struct MoreTime {
    const char* setup = "--timeout-setup";
    const char* step = "--timeout-step";
    const char* save = "--timeout-checkpoint";
    const char* evaluation = "--timeout-eval";
  };

  // `on_timeout` is called once, by the watchdog's thread; the message has no rank in it. All
  // outlive the watchdog.
  Watchdog(const Heartbeat& heartbeat, const comm::Communicator& communicator,
           const Timeouts& limits, OnTimeout on_timeout, const MoreTime& more_time);
  Watchdog(const Heartbeat& heartbeat, const comm::Communicator& communicator,
           const Timeouts& limits, OnTimeout on_timeout)
      : Watchdog(heartbeat, communicator, limits, std::move(on_timeout), MoreTime{}) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run(const std::stop_token& stop);

  const Heartbeat& heartbeat_;
  const comm::Communicator& communicator_;
  Timeouts limits_;  // that of a step counts for one phase of it
  OnTimeout on_timeout_;
  MoreTime more_time_;
  std::jthread thread_;  // last: uses the rest
};

}  // namespace sidestream::launch
