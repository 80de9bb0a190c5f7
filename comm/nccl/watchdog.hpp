// Looks after operations on the device that nobody waits for: asks whether they are done, whether
// NCCL has met an error, whether a peer has failed and whether time is up. The first failure ends
// everything: the communicator is aborted, so that the device and whoever waits for it go on, the
// peers are told, and every later call throws.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "comm/call.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/deadline.hpp"
#include "comm/peer_failure.hpp"
#include "comm/peer_progress.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::comm::nccl {

// What a rank does before it tells people that an operation is late.
struct LateCall {
  using Time = std::chrono::steady_clock::time_point;
  Time since;
  std::optional<Time> asked_at = {};  // who is missing; in its turn
};

// One operation on the device. The event is recorded behind it.
struct DeviceOperation {
  Call call;
  std::shared_ptr<cuda::OwnedEvent> end;
  std::chrono::milliseconds limit{};
  std::string_view limit_flag = {};  // that sets it; static
  ranges::AsyncRange range = {};
  std::optional<Deadline> deadline = {};  // runs from when it is the oldest that is not done
  bool peers_were_asked = false;          // at half of it
  std::optional<LateCall> late = {};      // past it
};

// What the watchdog asks and does; all callable from its thread.
struct WatchdogHooks {
  std::function<std::string()> async_error;                    // empty: none
  std::function<std::optional<PeerFailure>()> peer_failure;    // what a peer said before it stopped
  PeerProgress* peers;                                         // null: there is one rank
  std::function<void()> on_start;                              // of the thread
  std::function<void(const std::string& message)> on_failure;  // before anybody throws
  std::function<void()> abort;  // after that; what waits for the device ends by it
  std::function<void(const Call& call)> on_finished = {};  // may be empty
};

class Watchdog {
 public:
  Watchdog(int rank, WatchdogHooks hooks, std::chrono::milliseconds interval);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Operations are done in the order in which they are added.
  void add(std::shared_ptr<DeviceOperation> operation);

  // Throws the first failure, if there was one: when `on_failure` has come back, for which it
  // waits. Not from there.
  void rethrow_failure() const;
  bool failed() const noexcept { return state_.load(std::memory_order_acquire) == State::kFailed; }

  // A failure that the calling thread has met itself. Throws it.
  [[noreturn]] void fail(const Call& call, const std::string& cause);
  // The same in NCCL's words: its connections to a peer that has gone break before the peers' watch
  // names that one, which is waited for a moment. Throws PeerError then.
  [[noreturn]] void fail_with_nccl(const Call& call, const std::string& cause);
  // What a peer said before it stopped, or that it is gone. Throws PeerError, DeadPeerError, or
  // what came before.
  [[noreturn]] void fail_with_peer(const Call& call, const PeerFailure& failure);

  // A call that NCCL does not begin in time, with who is missing; where another rank tells people
  // of it, throws what that one said.
  [[noreturn]] void fail_late(const Call& call, const std::string& cause);

  // Blocks the calling thread until the event is done; looks for failures meanwhile.
  void wait(const cuda::OwnedEvent& event) const;

  // Blocks the calling thread until all that was added is done: who orders streams by it may never
  // have waited. Throws the first failure; a peer that fails and a deadline end this, too.
  void finish() const;

  bool idle() const;

 private:
  // Failing: `on_failure` runs. Who throws unwinds, and takes along what is to be written down.
  enum class State { kRuns, kFailing, kFailed };

  void run(const std::stop_token& stop);
  void look();
  void drop_finished();
  void check_front();
  void check_deadline(DeviceOperation& front);
  bool may_speak(LateCall& late) const;
  std::string missing(const Call& call) const;
  void fail_with(std::exception_ptr error, const std::string& message) noexcept;
  bool note_failure(std::exception_ptr error);
  void publish_failure();
  [[noreturn]] void throw_first() const;
  std::string prefix_of(const Call& call) const;

  int rank_;
  WatchdogHooks hooks_;
  std::chrono::milliseconds interval_;
  mutable std::mutex mutex_;  // the two below
  std::deque<std::shared_ptr<DeviceOperation>> queue_;
  std::exception_ptr failure_;
  std::atomic<State> state_{State::kRuns};
  std::atomic<bool> ending_{false};
  std::condition_variable_any work_;
  std::jthread thread_;  // last: started when the rest exists
};

}  // namespace sidestream::comm::nccl
