// A line below the message of a failure: where to read more about it. Left by whoever has written
// it down, printed by the rank that tells people.
#pragma once

#include <mutex>
#include <string>
#include <utility>

namespace sidestream::launch {

// Callable from any thread.
class LastWord {
 public:
  void leave(std::string line) {
    const std::lock_guard lock(mutex_);
    line_ = std::move(line);
  }

  // Empty: nobody has left one.
  std::string line() const {
    const std::lock_guard lock(mutex_);
    return line_;
  }

 private:
  mutable std::mutex mutex_;
  std::string line_;
};

}  // namespace sidestream::launch
