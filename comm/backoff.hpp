// How a thread passes the time while it polls: a caller that blocks anyway spins for a moment, then
// yields, then sleeps up to 50 us. Where ranks outnumber processors it yields at once: whoever it
// waits for may need this very core.
//
// The progress thread only sleeps, because the cores belong to the computation. A look at MPI takes
// some 10 us, and more of what computes, whose caches it leaves cold: a wait begins with half of
// what the waits before it took, goes on with a quarter of what it has taken itself, and never
// sleeps longer than 1 ms. What comes is late by a quarter of what it took, or by half of what is
// usual where it took less than that.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace sidestream::comm {

class Backoff {
 public:
  enum class Manner { kCaller, kCallerAmongMany, kProgressThread };

  explicit Backoff(Manner manner) : manner_(manner) {}

  // What was waited for has come.
  void reset() noexcept {
    attempts_ = 0;
    if (slept_.count() > 0) usual_ = usual_after(std::min(slept_, 2 * kLongestOfThread));
    slept_ = {};
  }

  // Nobody waits any more, or another thread does: what was slept says nothing of a wait.
  void forget() noexcept {
    attempts_ = 0;
    slept_ = {};
  }

  // Between two looks that follow each other.
  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void pause() {
    ++attempts_;
    if (manner_ == Manner::kCaller && attempts_ < kSpins) return relax();
    if (manner_ != Manner::kProgressThread && attempts_ < kSpins + kYields)
      return std::this_thread::yield();
    const auto sleep = next_sleep();
    std::this_thread::sleep_for(sleep);
    slept_ += sleep;
  }

  // What pause() sleeps where it does.
  std::chrono::microseconds next_sleep() const noexcept {
    if (manner_ != Manner::kProgressThread)
      return std::clamp(slept_ / 4, kShortestSleep, kLongestOfCaller);
    const auto sleep = slept_.count() == 0 ? usual_ / 2 : slept_ / 4;
    return std::clamp(sleep, kShortestSleep, kLongestOfThread);
  }

 private:
  static constexpr int kSpins = 200;
  static constexpr int kYields = 50;
  static constexpr std::chrono::microseconds kShortestSleep{5};
  static constexpr std::chrono::microseconds kLongestOfCaller{50};
  static constexpr std::chrono::microseconds kLongestOfThread{1000};

  // Short waits count more: one for a peer that was late says nothing of the next piece.
  std::chrono::microseconds usual_after(std::chrono::microseconds wait) const noexcept {
    return wait < usual_ ? (usual_ + wait) / 2 : (3 * usual_ + wait) / 4;
  }

  Manner manner_;
  int attempts_ = 0;
  std::chrono::microseconds slept_{};
  std::chrono::microseconds usual_{};
};

}  // namespace sidestream::comm
