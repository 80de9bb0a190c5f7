// "Please stop" from outside: SIGINT, SIGTERM, SIGUSR1 (what launch/run and batch systems send),
// SIGHUP (the terminal has gone). SIGHUP and SIGINT stay ignored where whoever started the process
// ignores them: nohup, and what a script starts with `&`.
//
// The first signal only sets a flag: the trainer saves at the next step boundary and ends with exit
// code 75. A second SIGINT or SIGTERM ends the process at once with 128 + signal, as the shell
// expects. Handlers touch no MPI.
#pragma once

namespace sidestream::launch {

class StopRequest {
 public:
  StopRequest();   // installs the handlers
  ~StopRequest();  // restores what was there before
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool requested() const noexcept;
  int signal() const noexcept;  // the first one; 0: none
};

}  // namespace sidestream::launch
