// What every thread of this process is doing right now: for the record that a hang leaves behind.
#pragma once

#include <string>
#include <vector>

namespace sidestream::launch {

struct ThreadStack {
  int id = 0;                      // the system's
  std::string name;                // "ss-progress"
  std::vector<std::string> calls;  // innermost first; empty: the thread takes no signals
  // Of such a thread, in the kernel's words: "D (disk sleep), system call 257, in rpc_wait_bit".
  std::string state = {};
};

// While it lives, stacks can be taken; takes a real-time signal for itself. One a process.
class ThreadStacks {
 public:
  ThreadStacks();
  ~ThreadStacks();
  ThreadStacks(const ThreadStacks&) = delete;
  ThreadStacks& operator=(const ThreadStacks&) = delete;

  // Of all threads, the caller first. A thread that does not answer within a tenth of a second is
  // listed with its state instead. One caller at a time.
  std::vector<ThreadStack> take() const;
};

}  // namespace sidestream::launch
