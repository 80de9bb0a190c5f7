// Time that a process has spent waiting, for deadlines. A pause of the process itself (Ctrl-Z, a
// debugger) hardly counts: a rank that was stopped must not blame the others when it goes on.
#pragma once

#include <algorithm>
#include <chrono>

namespace sidestream::comm {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds limit) : limit_(limit), last_(Clock::now()) {}

  // Call it at least once a second while waiting.
  void tick() noexcept {
    const auto now = Clock::now();
    waited_ += std::min<Clock::duration>(now - last_, std::chrono::seconds(1));
    last_ = now;
  }
  bool is_half_over() const noexcept { return 2 * waited_ >= limit_; }
  bool is_over() const noexcept { return waited_ >= limit_; }
  std::chrono::milliseconds limit() const noexcept { return limit_; }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point last_;
  Clock::duration waited_{};
};

}  // namespace sidestream::comm
