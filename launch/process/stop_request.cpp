#include "launch/process/stop_request.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace sidestream::launch {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

// Signal handlers have no argument for a context: this is the one place with static state.
volatile sig_atomic_t signals_seen = 0;
volatile sig_atomic_t first_signal = 0;
std::array<struct sigaction, kSignals.size()> previous_actions;
struct sigaction previous_pipe_action;

// `timeout` tells its child and then the whole group, and a session that ends follows its SIGHUP:
// what comes so soon is no second request. As launch/run has it.
constexpr std::int64_t kOneRequestNs = 150'000'000;
std::atomic<std::int64_t> first_signal_ns = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // or a handler may not use it

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

void note_signal(int signal) {
  if (signals_seen == 0) {
    first_signal_ns = now_ns();
    first_signal = signal;
  } else if ((signal == SIGINT || signal == SIGTERM) &&
             now_ns() - first_signal_ns >= kOneRequestNs) {
    _exit(128 + signal);
  }
  signals_seen = signals_seen + 1;
}

}  // namespace

StopRequest::StopRequest() {
  signals_seen = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &previous_actions[i]);
    const bool is_of_terminal = kSignals[i] == SIGHUP || kSignals[i] == SIGINT;
    if (is_of_terminal && previous_actions[i].sa_handler == SIG_IGN)
      sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
  // launch/run starts the ranks with this one blocked, so that a request in their first second
  // waits.
  sigset_t blocked_at_start;
  sigemptyset(&blocked_at_start);
  sigaddset(&blocked_at_start, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &blocked_at_start, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore,
            &previous_pipe_action);  // a reader that has gone ends the output, never the training
}

StopRequest::~StopRequest() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    // Asked to save when all is done and saved: too late, and no reason to be killed.
    const bool kills = kSignals[i] == SIGUSR1 && previous_actions[i].sa_handler == SIG_DFL;
    if (kills) previous_actions[i].sa_handler = SIG_IGN;
    sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
  sigaction(SIGPIPE, &previous_pipe_action, nullptr);
}

bool StopRequest::requested() const noexcept { return signals_seen > 0; }

int StopRequest::signal() const noexcept { return signals_seen > 0 ? first_signal : 0; }

}  // namespace sidestream::launch
