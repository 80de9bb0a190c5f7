#include "comm/progress_engine.hpp"

#include <sys/prctl.h>

#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "comm/more_time.hpp"
#include "core/base/dead_peer_error.hpp"
#include "core/base/worker_thread.hpp"

namespace sidestream::comm {
namespace {

// How long a failure may take to leave; usually it is gone at once.
constexpr std::chrono::milliseconds kAnnouncementTime{500};

// A caller that waits, on a core of its own, looks again at once: locks and clocks of a whole round
// take longer than the peer of a small operation.
constexpr int kLooksOfCaller = 16;

// How often an idle progress thread looks for messages of its peers.
constexpr std::chrono::milliseconds kIdlePoll{20};

// A sleep of 5 us must not become one of 55.
void prepare_thread() {
  core::become_worker_thread("ss-progress");
  prctl(PR_SET_TIMERSLACK, 1000);  // ns
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown failure";
  }
}

template <typename Error>
bool is(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

ProgressEngine::ProgressEngine(int rank, PeerWatch& watch, FlightRecorder& flights,
                               Backoff::Manner caller, Hooks hooks)
    : rank_(rank),
      watch_(watch),
      flights_(flights),
      caller_(caller),
      hooks_(std::move(hooks)),
      thread_([this](const std::stop_token& stop) { run_thread(stop); }) {}

ProgressEngine::~ProgressEngine() {
  thread_.request_stop();
  thread_.join();
  for (const auto& operation : queue_) operation->abandon();
}

void ProgressEngine::submit(std::shared_ptr<Operation> operation, DrivenBy driver) {
  {
    const std::lock_guard lock(queue_mutex_);
    if (failure_) std::rethrow_exception(failure_);
    flights_.note(FlightPlane::kHost, operation->call(), FlightState::kQueued);
    queue_.push_back(std::move(operation));
    if (waiting_callers_ > 0 || driver == DrivenBy::kCaller) return;
  }
  work_for_thread_.notify_one();
}

void ProgressEngine::wait(Operation& operation) {
  if (!operation.done()) {
    {
      const std::lock_guard lock(queue_mutex_);
      ++waiting_callers_;
    }
    Backoff backoff(caller_);
    const int looks = caller_ == Backoff::Manner::kCaller ? kLooksOfCaller : 1;
    while (!operation.done()) {
      const std::unique_lock driver(drive_mutex_, std::try_to_lock);
      const bool moved = driver.owns_lock() && drive(looks);
      moved ? backoff.reset() : backoff.pause();
    }
    const std::lock_guard lock(queue_mutex_);
    --waiting_callers_;
    if (waiting_callers_ == 0 && !queue_.empty()) work_for_thread_.notify_one();
  }
  operation.rethrow_failure();
}

void ProgressEngine::send_announcement_now() noexcept {
  constexpr std::chrono::milliseconds kPatience{200};
  if (!watch_.sends_messages()) return;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!failed() && std::chrono::steady_clock::now() < end) {
    if (const std::unique_lock driver(drive_mutex_, std::try_to_lock); driver.owns_lock()) {
      if (!failed()) watch_.flush_announcement(kAnnouncementTime);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a driver sends it itself
  }
}

void ProgressEngine::run_exclusively(const std::function<void()>& action) {
  const std::lock_guard driver(drive_mutex_);
  action();
}

bool ProgressEngine::failed() const {
  const std::lock_guard lock(queue_mutex_);
  return failure_ != nullptr;
}

std::optional<PeerFailure> ProgressEngine::failure_of_peer() const {
  const std::lock_guard lock(queue_mutex_);
  if (failure_ == nullptr || announced_itself_) return std::nullopt;
  return PeerFailure{.text = text_of(failure_), .is_gone = is<core::DeadPeerError>(failure_)};
}

std::int64_t ProgressEngine::progress_cpu_ns() const noexcept {
  clockid_t clock{};
  timespec time{};
  // native_handle is not const, but reading a clock changes nothing.
  const auto handle = const_cast<std::jthread&>(thread_).native_handle();
  if (pthread_getcpuclockid(handle, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void ProgressEngine::run_thread(const std::stop_token& stop) {
  prepare_thread();
  Backoff backoff(Backoff::Manner::kProgressThread);
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(queue_mutex_);
      const auto wanted = [this] { return !queue_.empty() && waiting_callers_ == 0; };
      work_for_thread_.wait_for(lock, stop, kIdlePoll, wanted);
      if (stop.stop_requested()) return;
      if (waiting_callers_ > 0) {  // the caller drives
        backoff.forget();
        continue;
      }
    }
    bool moved = false;
    if (const std::unique_lock driver(drive_mutex_, std::try_to_lock); driver.owns_lock())
      moved = drive(1);
    if (moved)
      backoff.reset();
    else if (is_idle())
      backoff.forget();
    else
      backoff.pause();
  }
}

bool ProgressEngine::is_idle() const {
  const std::lock_guard lock(queue_mutex_);
  return queue_.empty();
}

std::shared_ptr<Operation> ProgressEngine::front() const {
  const std::lock_guard lock(queue_mutex_);
  return queue_.empty() ? nullptr : queue_.front();
}

bool ProgressEngine::drive(int looks) {
  if (failed()) return false;  // MPI is left alone, see fail()
  try {
    watch_.poll();
    // Read first: what a peer had done before it failed is there by now, and an operation that all
    // ranks have reached ends well.
    const std::optional<std::string> failure = watch_.failure_of_peer();
    // What is told on is the peer's: this rank has found nothing out.
    if (const auto announced = watch_.announced(); announced && !failure) {
      give_up(*announced);
      return true;
    }
    if (const auto& death = watch_.death_of_peer(); death && !failure)
      throw core::DeadPeerError(*death);
    const auto operation = front();
    const bool moved =
        operation && (operation->started() || !failure) && advance(*operation, looks);
    if (failure && !moved) throw core::PeerError(*failure);
    return moved;
  } catch (...) {
    const auto operation = front();
    fail(operation ? describe(*operation, std::current_exception()) : std::current_exception());
    return true;
  }
}

// False: it waits for a peer.
bool ProgressEngine::advance(Operation& operation, int looks) {
  if (!operation.started()) {
    operation.start();
    flights_.note(FlightPlane::kHost, operation.call(), FlightState::kStarted);
    watch_.note_started(operation.call().sequence);
  }
  bool moved = false;
  Advance advance = Advance::kWaiting;
  for (int look = 0; look < looks && advance != Advance::kFinished; ++look) {
    if (look > 0 && advance == Advance::kWaiting) Backoff::relax();
    advance = operation.advance();
    moved = moved || advance != Advance::kWaiting;
  }
  if (!moved) {
    check_deadline(operation);
    return false;
  }
  if (advance == Advance::kFinished) {
    {
      const std::lock_guard lock(queue_mutex_);
      queue_.pop_front();
    }
    operation.finish();
    flights_.note(FlightPlane::kHost, operation.call(), FlightState::kFinished);
  }
  return true;
}

void ProgressEngine::check_deadline(Operation& operation) {
  operation.deadline().tick();
  if (operation.ask_now()) watch_.ask_everyone();
  if (!operation.deadline().is_over()) return;
  if (!operation.over_since()) {
    operation.note_over();
    watch_.ask_again();
  }
  const auto answered = *operation.over_since() + watch_.time_to_answer();
  if (std::chrono::steady_clock::now() < answered) return;
  if (!watch_.may_speak(answered)) return;  // another rank tells it
  throw core::CollectiveError(
      "not finished after " + std::to_string(operation.deadline().limit().count()) +
      " ms; missing: " + watch_.describe_missing(operation.call().sequence) +
      more_time(operation.deadline_flag()));
}

std::exception_ptr ProgressEngine::describe(const Operation& operation,
                                            const std::exception_ptr& cause) const {
  const std::string text = "rank " + std::to_string(rank_) + ": " + operation.call().description() +
                           ": " + text_of(cause);
  if (is<core::DeadPeerError>(cause)) return std::make_exception_ptr(core::DeadPeerError(text));
  if (is<core::PeerError>(cause)) return std::make_exception_ptr(core::PeerError(text));
  return std::make_exception_ptr(core::CollectiveError(text));
}

// MPI may still know the buffers of operations that are cut short here, and callers free them as
// soon as they are told. So the peers are told first, and from then on this process does not call
// MPI any more: what arrives stays outside.
void ProgressEngine::fail(std::exception_ptr error) {
  if (const auto operation = front())
    flights_.note(FlightPlane::kHost, operation->call(), FlightState::kFailed);
  hooks_.on_failure();
  tell_peers(error);
  watch_.flush_announcement(kAnnouncementTime);
  hooks_.before_throwing();
  drop_all(error);
}

// Who sees a death sees it alone: ranks of other nodes may have no way to find out.
void ProgressEngine::tell_peers(const std::exception_ptr& error) {
  if (is<core::DeadPeerError>(error)) return watch_.announce_death(text_of(error));
  if (!is<core::PeerError>(error)) watch_.announce_failure(text_of(error));
}

// Whoever announced it knows what happened and says so: nothing is found out here.
void ProgressEngine::give_up(const std::string& announced) {
  watch_.flush_announcement(kAnnouncementTime);
  hooks_.on_failure();
  {
    const std::lock_guard lock(queue_mutex_);
    announced_itself_ = true;
  }
  drop_all(std::make_exception_ptr(core::CollectiveError(
      "rank " + std::to_string(rank_) + " has told its peers that it failed: " + announced)));
}

void ProgressEngine::drop_all(const std::exception_ptr& error) {
  std::deque<std::shared_ptr<Operation>> dropped;
  {
    const std::lock_guard lock(queue_mutex_);
    failure_ = error;
    dropped.swap(queue_);
  }
  for (const auto& operation : dropped) operation->fail(error);
}

}  // namespace sidestream::comm
