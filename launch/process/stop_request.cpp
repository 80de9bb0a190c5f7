#include "launch/process/stop_request.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>

namespace sidestream::launch {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

// Signal handlers have no argument for a context: this is the one place with static state.
volatile sig_atomic_t signals_seen = 0;
volatile sig_atomic_t first_signal = 0;
std::array<struct sigaction, kSignals.size()> previous_actions;
struct sigaction previous_pipe_action;

void note_signal(int signal) {
  const bool insists = signal == SIGINT || signal == SIGTERM;
  if (signals_seen > 0 && insists) _exit(128 + signal);
  if (signals_seen == 0) first_signal = signal;
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
