// One NCCL communicator: made, used and ended with a deadline at every point where NCCL could wait
// for a peer.
//
// Calls come from the training thread; abort() from any thread. After abort() every call throws.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "comm/nccl/api.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::nccl {

// Peers did not come within the limit: somebody else may know why.
class PeersLate : public core::CollectiveError {
 public:
  using CollectiveError::CollectiveError;
};

class Link {
 public:
  // Collective. Throws CollectiveError with NCCL's words when it fails, PeersLate when not all
  // ranks have come within the limit; what was half made is aborted.
  Link(std::shared_ptr<Api> api, const UniqueId& id, const InitOptions& options,
       std::chrono::milliseconds limit);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();  // orderly when nothing went wrong: flushes, at most a few seconds

  using Look = std::function<void()>;

  // Runs `call` and waits until NCCL has put it on the stream (the first ones connect to peers).
  // Does not wait for the operation itself. `look` is called while it waits, on this thread, and
  // may throw. Throws CollectiveError; PeersLate past the limit.
  void launch(
      const std::function<Result(Api&, Comm)>& call, const Look& look = [] {});

  // Empty, or what has gone wrong on this communicator. Never blocks: empty, too, while a call is
  // in NCCL, which may hang there.
  std::string async_error();

  // NCCL lets one thread at a time use a communicator, and frees it here: a call that is in NCCL is
  // waited for a moment, and where it hangs (in the driver) it is what aborts when it comes back.
  //
  // While a CUDA graph has launches of this communicator NCCL stops the device at once, but comes
  // back from its abort only when that graph is gone: a thread of its own waits for that.
  void abort() noexcept;
  void note_graph(bool exists) noexcept { in_graph_ = exists; }

 private:
  class Turn;
  enum class IfBusy { kWait, kLeave };

  Result settle(
      Result result, std::chrono::milliseconds limit, const Look& look = [] {});
  Result state(IfBusy if_busy = IfBusy::kWait);
  bool is_usable() const noexcept { return comm_ != nullptr && !ending_; }
  void abort_in_turn() noexcept;

  std::shared_ptr<Api> api_;
  std::chrono::milliseconds limit_;
  std::recursive_mutex mutex_;
  Comm comm_ = nullptr;  // null after abort()
  std::atomic<bool> in_graph_{false}, ending_{false};
};

}  // namespace sidestream::comm::nccl
