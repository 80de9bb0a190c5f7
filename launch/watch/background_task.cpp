#include "launch/watch/background_task.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "core/base/worker_thread.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kBetweenLooks{2};
constexpr int kNiceness = 5;

void prepare_thread() {
  core::become_worker_thread("ss-background");
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  // Beside those of this rank, whatever niceness it was started with.
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + kNiceness);
}

}  // namespace

BackgroundTask::~BackgroundTask() { leave(kPatience); }

void BackgroundTask::leave(std::chrono::milliseconds patience) noexcept {
  if (!thread_.joinable()) return;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kBetweenLooks);
  done() ? thread_.join() : thread_.detach();
}

void BackgroundTask::start(std::function<void()> work) {
  auto state = std::make_shared<State>();
  thread_ = std::thread([state, work = std::move(work)]() mutable {
    prepare_thread();
    try {
      work();
    } catch (...) {
      state->failure = std::current_exception();
    }
    work = nullptr;  // frees what it owns before anybody is told
    state->done.store(true, std::memory_order_release);
  });
  state_ = std::move(state);
}

void BackgroundTask::finish() {
  if (!thread_.joinable()) return;
  thread_.join();
  rethrow_failure();
}

bool BackgroundTask::finish_within(std::chrono::milliseconds limit) {
  leave(limit);
  if (!done()) return false;
  rethrow_failure();
  return true;
}

void BackgroundTask::rethrow_failure() {
  const auto state = std::exchange(state_, nullptr);
  if (state && state->failure) std::rethrow_exception(state->failure);
}

}  // namespace sidestream::launch
