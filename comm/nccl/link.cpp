#include "comm/nccl/link.hpp"

#include <thread>
#include <utility>

#include "comm/deadline.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::nccl {
namespace {

using Status = Result::Status;

constexpr std::chrono::seconds kLimitOfClosing{5};
// A launch takes some ten microseconds: until here without sleeping, which takes longer than that.
constexpr std::chrono::microseconds kLaunch{100};
constexpr std::chrono::microseconds kBetweenPolls{50};
// How long abort() waits for a call that is in NCCL.
constexpr std::chrono::milliseconds kLimitOfTurn{1000};

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// Of one thread at a time. At its end it aborts in place of who could not wait for it.
class Link::Turn {
 public:
  Turn(Link& link, IfBusy if_busy) : link_(link), lock_(link.mutex_, std::defer_lock) {
    if (if_busy == IfBusy::kWait) {
      lock_.lock();
    } else {
      (void)lock_.try_lock();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!has_come()) return;
    lock_.unlock();
    if (link_.ending_) link_.abort();
  }

  bool has_come() const noexcept { return lock_.owns_lock(); }

 private:
  Link& link_;
  std::unique_lock<std::recursive_mutex> lock_;
};

Link::Link(std::shared_ptr<Api> api, const UniqueId& id, const InitOptions& options,
           std::chrono::milliseconds limit)
    : api_(std::move(api)), limit_(limit) {
  const Result made = settle(api_->init(&comm_, id, options), limit);
  if (made.status == Status::kDone) return;
  abort();
  const std::string who = "rank " + std::to_string(options.rank);
  if (made.status == Status::kFailed)
    throw core::CollectiveError("NCCL cannot connect " + who + ": " + made.text);
  throw PeersLate("NCCL: " + who + " of " + std::to_string(options.size) +
                  " is not connected after " + std::to_string(limit.count()) +
                  " ms: a rank is missing, or the network that NCCL chose does not reach it "
                  "(NCCL_DEBUG=INFO shows which, NCCL_SOCKET_IFNAME=INTERFACE chooses another)");
}

Link::~Link() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  if (settle(api_->finalize(comm_), kLimitOfClosing).status != Status::kDone) {
    abort();
    return;
  }
  api_->destroy(std::exchange(comm_, nullptr));
}

// Without the lock between polls: abort() must get in.
Result Link::settle(Result result, std::chrono::milliseconds limit, const Look& look) {
  if (result.status == Status::kDone) result = state();
  Deadline deadline(limit);
  const auto awake_until = std::chrono::steady_clock::now() + kLaunch;
  while (result.status == Status::kInProgress && !deadline.is_over()) {
    if (std::chrono::steady_clock::now() < awake_until) {
      std::this_thread::yield();
    } else {
      look();
      std::this_thread::sleep_for(kBetweenPolls);
    }
    deadline.tick();
    result = state();
  }
  return result;
}

// Calls that register memory say that they are done while NCCL still works on it (2.28.9): only
// this tells.
Result Link::state(IfBusy if_busy) {
  const Turn turn(*this, if_busy);
  if (!turn.has_come()) return {.status = Status::kInProgress};
  if (!is_usable()) return {.status = Status::kFailed, .text = "the communicator was aborted"};
  return api_->async_error(comm_);
}

void Link::launch(const std::function<Result(Api&, Comm)>& call, const Look& look) {
  Result result;
  {
    const Turn turn(*this, IfBusy::kWait);
    if (!is_usable()) throw core::CollectiveError("the communicator was aborted");
    result = call(*api_, comm_);
  }
  result = settle(std::move(result), limit_, look);
  if (result.status == Status::kDone) return;
  if (result.status == Status::kFailed) throw core::CollectiveError(result.text);
  throw PeersLate("NCCL has not started it after " + std::to_string(limit_.count()) + " ms");
}

std::string Link::async_error() {
  const Result result = state(IfBusy::kLeave);
  return result.status == Status::kFailed ? result.text : std::string();
}

void Link::abort() noexcept {
  ending_ = true;
  Deadline deadline(kLimitOfTurn);
  std::unique_lock lock(mutex_, std::try_to_lock);
  while (!lock.owns_lock() && !deadline.is_over()) {
    std::this_thread::sleep_for(kBetweenPolls);
    deadline.tick();
    (void)lock.try_lock();
  }
  if (lock.owns_lock()) abort_in_turn();
}

void Link::abort_in_turn() noexcept {
  if (comm_ == nullptr) return;
  const Comm comm = std::exchange(comm_, nullptr);
  if (!in_graph_) return api_->abort(comm);
  try {
    std::thread([api = api_, comm] { api->abort(comm); }).detach();
  } catch (const std::exception&) {  // no thread is to be had
    api_->abort(comm);
  }
}

}  // namespace sidestream::comm::nccl
