#include "comm/nccl/watchdog.hpp"

#include <utility>

#include "comm/more_time.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::nccl {
namespace {

constexpr std::chrono::microseconds kBetweenLooksAtEvents{20};
constexpr std::chrono::milliseconds kTimeToNameAPeer{1000};
constexpr std::chrono::milliseconds kBetweenLooksAtPeers{5};
constexpr std::chrono::milliseconds kBetweenLooksAtTheEnd{1};

}  // namespace

Watchdog::Watchdog(int rank, WatchdogHooks hooks, std::chrono::milliseconds interval)
    : rank_(rank),
      hooks_(std::move(hooks)),
      interval_(interval),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Watchdog::~Watchdog() {
  ending_ = true;
  thread_.request_stop();
  work_.notify_all();
}

void Watchdog::add(std::shared_ptr<DeviceOperation> operation) {
  {
    const std::lock_guard lock(mutex_);
    if (!failed()) queue_.push_back(std::move(operation));
  }
  rethrow_failure();
  work_.notify_all();
}

void Watchdog::rethrow_failure() const {
  if (state_.load(std::memory_order_acquire) != State::kRuns) throw_first();
}

void Watchdog::finish() const {
  while (!idle()) std::this_thread::sleep_for(kBetweenLooksAtTheEnd);
  rethrow_failure();
}

bool Watchdog::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

std::string Watchdog::prefix_of(const Call& call) const {
  return "rank " + std::to_string(rank_) + ": " + call.description();
}

void Watchdog::fail(const Call& call, const std::string& cause) {
  const std::string message = prefix_of(call) + ": " + cause;
  fail_with(std::make_exception_ptr(core::CollectiveError(message)), message);
  throw_first();
}

void Watchdog::fail_with_nccl(const Call& call, const std::string& cause) {
  Deadline deadline(kTimeToNameAPeer);
  for (; !deadline.is_over() && !ending_; deadline.tick()) {
    rethrow_failure();
    if (const auto failure = hooks_.peer_failure()) fail_with_peer(call, *failure);
    std::this_thread::sleep_for(kBetweenLooksAtPeers);
  }
  fail(call, cause);
}

void Watchdog::fail_with_peer(const Call& call, const PeerFailure& failure) {
  const std::string text = prefix_of(call) + ": a peer has stopped: " + failure.text;
  fail_with(error_of(failure, text), text);
  throw_first();
}

void Watchdog::fail_late(const Call& call, const std::string& cause) {
  LateCall late{.since = LateCall::Time::clock::now()};
  while (!may_speak(late)) {
    rethrow_failure();
    if (const auto failure = hooks_.peer_failure()) fail_with_peer(call, *failure);
    std::this_thread::sleep_for(kBetweenLooksAtPeers);
  }
  fail(call, cause + "; missing: " + missing(call));
}

void Watchdog::throw_first() const {
  state_.wait(State::kFailing, std::memory_order_acquire);
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void Watchdog::wait(const cuda::OwnedEvent& event) const {
  while (!failed() && !event.done()) std::this_thread::sleep_for(kBetweenLooksAtEvents);
  rethrow_failure();
}

void Watchdog::run(const std::stop_token& stop) {
  if (hooks_.on_start) hooks_.on_start();
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, stop, [this] { return !queue_.empty(); });
      if (stop.stop_requested()) return;
    }
    try {
      look();
    } catch (const std::exception& error) {
      fail_with(std::current_exception(), error.what());
    }
    std::unique_lock lock(mutex_);
    work_.wait_for(lock, stop, interval_, [] { return false; });
  }
}

void Watchdog::look() {
  drop_finished();
  if (!idle()) check_front();
}

void Watchdog::drop_finished() {
  const std::lock_guard lock(mutex_);
  while (!queue_.empty() && queue_.front()->end->done()) {
    queue_.front()->range.end();
    if (hooks_.on_finished) hooks_.on_finished(queue_.front()->call);
    queue_.pop_front();
  }
}

// One message for all. Who speaks asks first, and nobody else: thousands of ranks may be late.
bool Watchdog::may_speak(LateCall& late) const {
  if (hooks_.peers == nullptr) return true;
  const auto now = LateCall::Time::clock::now();
  if (!late.asked_at) {
    if (!hooks_.peers->may_speak(now - late.since)) return false;
    hooks_.peers->ask_again();
    late.asked_at = now;
  }
  return now - *late.asked_at >= hooks_.peers->time_to_answer();
}

std::string Watchdog::missing(const Call& call) const {
  return hooks_.peers == nullptr ? "nobody: there is one rank"
                                 : hooks_.peers->describe_missing(call.sequence);
}

void Watchdog::check_front() {
  std::shared_ptr<DeviceOperation> front;
  {
    const std::lock_guard lock(mutex_);
    front = queue_.front();
  }
  if (const std::string error = hooks_.async_error(); !error.empty())
    fail_with_nccl(front->call, error);
  if (const auto failure = hooks_.peer_failure()) fail_with_peer(front->call, *failure);
  if (!front->deadline) front->deadline.emplace(front->limit);
  front->deadline->tick();
  check_deadline(*front);
}

void Watchdog::check_deadline(DeviceOperation& front) {
  if (hooks_.peers != nullptr && front.deadline->is_half_over() &&
      !std::exchange(front.peers_were_asked, true))
    hooks_.peers->ask_everyone();
  if (!front.deadline->is_over()) return;
  if (!front.late) front.late = LateCall{.since = LateCall::Time::clock::now()};
  if (!may_speak(*front.late)) return;
  fail(front.call, "not finished after " + std::to_string(front.limit.count()) +
                       " ms; missing: " + missing(front.call) + more_time(front.limit_flag));
}

// True for the first one.
bool Watchdog::note_failure(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) return false;
  failure_ = std::move(error);
  state_.store(State::kFailing, std::memory_order_release);
  queue_.clear();
  return true;
}

// Together with what was added meanwhile.
void Watchdog::publish_failure() {
  {
    const std::lock_guard lock(mutex_);
    state_.store(State::kFailed, std::memory_order_release);
    queue_.clear();
  }
  state_.notify_all();
}

void Watchdog::fail_with(std::exception_ptr error, const std::string& message) noexcept {
  if (!note_failure(std::move(error))) return;
  try {
    hooks_.on_failure(message);
  } catch (...) {  // the failure itself is kept: it is what callers will see
  }
  publish_failure();
  try {
    hooks_.abort();
  } catch (...) {
  }
}

}  // namespace sidestream::comm::nccl
