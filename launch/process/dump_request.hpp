// "Please write down what you know" from outside: SIGUSR2. The process goes on as if nothing had
// happened.
#pragma once

#include <chrono>

namespace sidestream::launch {

class DumpRequest {
 public:
  DumpRequest();   // installs the handler
  ~DumpRequest();  // restores what was there before
  DumpRequest(const DumpRequest&) = delete;
  DumpRequest& operator=(const DumpRequest&) = delete;

  // True once for each request; waits so long for one.
  bool wait_for(std::chrono::milliseconds limit) const noexcept;
  // Lets wait_for come back at once, with false, as often as it is called.
  void interrupt() const noexcept;
};

}  // namespace sidestream::launch
