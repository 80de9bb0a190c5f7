#include "launch/process/dump_request.hpp"

#include <semaphore.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <ctime>

namespace sidestream::launch {
namespace {

// Signal handlers have no argument for a context: this is the one place with static state.
sem_t wake_ups;
std::atomic<int> requests{0};
struct sigaction previous_action;

void note_request(int) {
  const int saved_error = errno;
  requests.fetch_add(1, std::memory_order_relaxed);
  sem_post(&wake_ups);
  errno = saved_error;
}

bool take_request() noexcept {
  int count = requests.load(std::memory_order_relaxed);
  while (count > 0) {
    if (requests.compare_exchange_weak(count, count - 1)) return true;
  }
  return false;
}

}  // namespace

DumpRequest::DumpRequest() {
  sem_init(&wake_ups, 0, 0);
  requests.store(0);
  struct sigaction action {};
  action.sa_handler = note_request;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR2, &action, &previous_action);
  // launch/run starts the ranks with it blocked, so that a request in their first second waits.
  sigset_t blocked_at_start;
  sigemptyset(&blocked_at_start);
  sigaddset(&blocked_at_start, SIGUSR2);
  pthread_sigmask(SIG_UNBLOCK, &blocked_at_start, nullptr);
}

DumpRequest::~DumpRequest() {
  // One that comes too late is no reason to be killed.
  if (previous_action.sa_handler == SIG_DFL) previous_action.sa_handler = SIG_IGN;
  sigaction(SIGUSR2, &previous_action, nullptr);
}

bool DumpRequest::wait_for(std::chrono::milliseconds limit) const noexcept {
  if (take_request()) return true;
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  const std::int64_t end_ns = until.tv_nsec + std::chrono::nanoseconds(limit).count();
  until.tv_sec += end_ns / 1'000'000'000;
  until.tv_nsec = end_ns % 1'000'000'000;
  while (sem_timedwait(&wake_ups, &until) != 0) {
    if (errno != EINTR) return take_request();
  }
  return take_request();
}

void DumpRequest::interrupt() const noexcept { sem_post(&wake_ups); }

}  // namespace sidestream::launch
