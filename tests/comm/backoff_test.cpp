// Sleeps are counted as they were asked for, so that nothing here depends on what the system makes
// of them.
#include "comm/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace sidestream::comm {
namespace {

using std::chrono::microseconds;

// Waits until `time` has been slept; returns how often there was a look.
int wait(Backoff& backoff, microseconds time) {
  int looks = 0;
  for (microseconds slept{0}; slept < time; ++looks) {
    slept += backoff.next_sleep();
    backoff.pause();
  }
  backoff.reset();
  return looks;
}

TEST(BackoffTest, progressThread_firstWait_sleepsAQuarterOfWhatItHasTaken) {
  Backoff backoff(Backoff::Manner::kProgressThread);
  for (microseconds slept{0}; slept < microseconds(8000); backoff.pause()) {
    const microseconds next = backoff.next_sleep();
    EXPECT_EQ(next, std::clamp(slept / 4, microseconds(5), microseconds(1000)));
    slept += next;
  }
}

TEST(BackoffTest, progressThread_waitsAlike_areLookedAtLessOften) {
  Backoff backoff(Backoff::Manner::kProgressThread);
  const int first = wait(backoff, microseconds(1200));
  int last = first;
  for (int i = 0; i < 20; ++i) last = wait(backoff, microseconds(1200));
  EXPECT_GT(first, 15);
  EXPECT_LE(last, 7);
  EXPECT_GE(last, 2);
}

TEST(BackoffTest, progressThread_afterLongWaits_shortOnesAreSoonLearnt) {
  Backoff backoff(Backoff::Manner::kProgressThread);
  for (int i = 0; i < 20; ++i) wait(backoff, microseconds(20'000));
  EXPECT_GE(backoff.next_sleep(), microseconds(900));
  for (int i = 0; i < 12; ++i) wait(backoff, microseconds(1));
  EXPECT_LE(backoff.next_sleep(), microseconds(40));
}

// What is learnt is what was slept, which is longer than what was waited for: it sinks all the
// same.
TEST(BackoffTest, progressThread_afterLongWaits_middlingOnesAreNoticedInTime) {
  for (const microseconds time : {microseconds(100), microseconds(300), microseconds(650)}) {
    Backoff backoff(Backoff::Manner::kProgressThread);
    for (int i = 0; i < 20; ++i) wait(backoff, microseconds(20'000));
    for (int i = 0; i < 30; ++i) wait(backoff, time);
    microseconds slept{0};
    while (slept < time) {
      slept += backoff.next_sleep();
      backoff.pause();
    }
    EXPECT_LE(slept, time * 13 / 10);
  }
}

TEST(BackoffTest, progressThread_aWaitThatAnotherThreadTookOver_isForgotten) {
  Backoff backoff(Backoff::Manner::kProgressThread);
  for (int i = 0; i < 20; ++i) wait(backoff, microseconds(100));
  const microseconds before = backoff.next_sleep();
  for (int i = 0; i < 40; ++i) backoff.pause();
  backoff.forget();
  EXPECT_EQ(backoff.next_sleep(), before);
}

TEST(BackoffTest, progressThread_whatCameAtOnce_saysNothing) {
  Backoff backoff(Backoff::Manner::kProgressThread);
  for (int i = 0; i < 20; ++i) wait(backoff, microseconds(1200));
  const microseconds before = backoff.next_sleep();
  for (int i = 0; i < 10; ++i) backoff.reset();
  EXPECT_EQ(backoff.next_sleep(), before);
}

TEST(BackoffTest, caller_sleepsAtMost50us) {
  Backoff backoff(Backoff::Manner::kCaller);
  for (int i = 0; i < 300; ++i) backoff.pause();
  EXPECT_LE(backoff.next_sleep(), microseconds(50));
  EXPECT_GE(backoff.next_sleep(), microseconds(5));
}

}  // namespace
}  // namespace sidestream::comm
