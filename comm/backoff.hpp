// How a thread passes the time while it polls: a caller that blocks anyway spins for a moment, then
// yields, then sleeps up to 50 us. Where ranks outnumber processors it yields at once: whoever it
// waits for may need this very core. The progress thread only sleeps, because the cores belong to
// the computation. A look at MPI takes some 10 us: the longer the thread has waited, the longer it
// sleeps, a quarter of that time and up to 200 us, so that what comes is late by little of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace sidestream::comm {

class Backoff {
 public:
  enum class Manner { kCaller, kCallerAmongMany, kProgressThread };

  explicit Backoff(Manner manner) : manner_(manner) {}

  void reset() noexcept {
    attempts_ = 0;
    slept_ = {};
  }

  void pause() {
    ++attempts_;
    if (manner_ == Manner::kCaller && attempts_ < kSpins) return relax();
    if (manner_ != Manner::kProgressThread && attempts_ < kSpins + kYields)
      return std::this_thread::yield();
    const auto longest = manner_ == Manner::kProgressThread ? kLongestOfThread : kLongestOfCaller;
    const auto sleep = std::clamp(slept_ / 4, kShortestSleep, longest);
    std::this_thread::sleep_for(sleep);
    slept_ += sleep;
  }

 private:
  static constexpr int kSpins = 200;
  static constexpr int kYields = 50;
  static constexpr std::chrono::microseconds kShortestSleep{5};
  static constexpr std::chrono::microseconds kLongestOfCaller{50};
  static constexpr std::chrono::microseconds kLongestOfThread{200};

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  Manner manner_;
  int attempts_ = 0;
  std::chrono::microseconds slept_{};
};

}  // namespace sidestream::comm
