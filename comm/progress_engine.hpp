// Drives the operations of a communicator, one after another in the order of the calls. Driving is
// done by one thread at a time: the progress thread while the callers compute, a caller while it
// waits (no hand-over for a short operation). Only the driver calls MPI.
//
// The first failure ends everything: operations in flight and all later ones throw it, the peers
// are told, and MPI is not called any more. One that this rank has announced itself is such a
// failure, too: its peers will not come to what is in flight.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/backoff.hpp"
#include "comm/flight_recorder.hpp"
#include "comm/operation.hpp"
#include "comm/peer_failure.hpp"
#include "comm/peer_watch.hpp"

namespace sidestream::comm {

class ProgressEngine {
 public:
  struct Hooks {
    std::function<void()> on_failure;       // once, by the driver, when an operation fails
    std::function<void()> before_throwing;  // then, when the peers know and no caller does
  };
  // `watch` and `flights` outlive the engine. caller: how a caller passes the time while it waits.
  ProgressEngine(int rank, PeerWatch& watch, FlightRecorder& flights, Backoff::Manner caller,
                 Hooks hooks);
  ~ProgressEngine();  // stops the thread; operations that are not done are dropped
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  // kCaller: a promise to wait() next, so that the progress thread need not be woken; it takes over
  // when it looks the next time, some 20 ms later, if that was not true.
  enum class DrivenBy { kAnyThread, kCaller };

  // Does not block, except for the moment that another thread holds the queue. Throws the failure
  // of an earlier operation.
  void submit(std::shared_ptr<Operation> operation, DrivenBy driver = DrivenBy::kAnyThread);

  // Blocks, driving, until the operation is done. Throws its failure.
  void wait(Operation& operation);

  // Messages that the watch has to send leave now, not with the next look of an idle thread, if
  // whoever drives lets go in time. Callable from any thread.
  void send_announcement_now() noexcept;

  // Runs something that calls MPI itself while nobody drives. Nothing may be in flight.
  void run_exclusively(const std::function<void()>& action);

  bool failed() const;
  bool is_idle() const;  // nothing is in flight; callable from any thread
  // What has ended everything, unless this rank has announced it itself. Callable from any thread.
  std::optional<PeerFailure> failure_of_peer() const;
  std::int64_t progress_cpu_ns() const noexcept;  // CPU time that the progress thread has used

 private:
  void run_thread(const std::stop_token& stop);
  // `looks`: how often an operation that waits for a peer is looked at before all else is.
  bool drive(int looks);  // false: nothing moved
  bool advance(Operation& operation, int looks);
  void check_deadline(Operation& operation);
  void fail(std::exception_ptr error);
  void tell_peers(const std::exception_ptr& error);
  void give_up(const std::string& announced);
  void drop_all(const std::exception_ptr& error);
  std::exception_ptr describe(const Operation& operation, const std::exception_ptr& cause) const;
  std::shared_ptr<Operation> front() const;

  int rank_;
  PeerWatch& watch_;
  FlightRecorder& flights_;
  Backoff::Manner caller_;
  Hooks hooks_;
  std::mutex drive_mutex_;          // held by the driver
  mutable std::mutex queue_mutex_;  // the four below
  std::deque<std::shared_ptr<Operation>> queue_;
  std::exception_ptr failure_;
  bool announced_itself_ = false;
  int waiting_callers_ = 0;
  std::condition_variable_any work_for_thread_;
  std::jthread thread_;  // last: started when the rest exists
};

}  // namespace sidestream::comm
