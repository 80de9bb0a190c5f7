// How a thread passes the time while it polls: a caller that blocks anyway spins for a moment, then
// yields, then sleeps; the progress thread only sleeps, because the cores belong to the
// computation. At most 50 us a sleep.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace sidestream::comm {

class Backoff {
 public:
  enum class Manner { kCaller, kProgressThread };

  explicit Backoff(Manner manner) : manner_(manner) {}

  void reset() noexcept {
    attempts_ = 0;
    sleep_ = kShortestSleep;
  }

  void pause() {
    ++attempts_;
    if (manner_ == Manner::kCaller && attempts_ < kSpins) return relax();
    if (manner_ == Manner::kCaller && attempts_ < kSpins + kYields)
      return std::this_thread::yield();
    std::this_thread::sleep_for(sleep_);
    sleep_ = std::min(2 * sleep_, kLongestSleep);
  }

 private:
  static constexpr int kSpins = 200;
  static constexpr int kYields = 50;
  static constexpr std::chrono::microseconds kShortestSleep{5};
  static constexpr std::chrono::microseconds kLongestSleep{50};

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  Manner manner_;
  int attempts_ = 0;
  std::chrono::microseconds sleep_ = kShortestSleep;
};

}  // namespace sidestream::comm
