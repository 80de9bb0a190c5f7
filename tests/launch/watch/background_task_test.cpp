#include "launch/watch/background_task.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

namespace sidestream::launch {
namespace {

TEST(BackgroundTaskTest, finish_waitsAndThrowsOnce) {
  BackgroundTask task;
  EXPECT_TRUE(task.done());
  std::atomic<bool> go{false};
  task.start([&] {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw std::runtime_error("the disk is full");
  });
  EXPECT_FALSE(task.done());
  go = true;
  EXPECT_THROW(task.finish(), std::runtime_error);
  EXPECT_TRUE(task.done());
  task.finish();

  int value = 0;
  task.start([&] { value = 3; });
  task.finish();
  EXPECT_EQ(value, 3);
}

// Sleeps until somebody opens it, or for so long that whoever waits for it is found out.
class Gate {
 public:
  void open() { state_->open = true; }
  bool was_passed() const { return state_->passed; }
  std::function<void()> work() const {
    return [state = state_] {
      for (int i = 0; i < 5000 && !state->open; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      state->passed = true;
      throw std::runtime_error("the disk is full");
    };
  }

 private:
  struct State {
    std::atomic<bool> open{false};
    std::atomic<bool> passed{false};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

TEST(BackgroundTaskTest, finishWithin_leavesBehindWhatDoesNotEnd) {
  Gate gate;
  BackgroundTask task;
  task.start(gate.work());

  EXPECT_FALSE(task.finish_within(std::chrono::milliseconds(20)));
  EXPECT_FALSE(task.done());
  EXPECT_FALSE(gate.was_passed());

  gate.open();
  while (!task.done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  task.start(gate.work());
  EXPECT_THROW(task.finish_within(std::chrono::seconds(10)), std::runtime_error);
}

TEST(BackgroundTaskTest, leave_isNotWaitedForAtTheEndEither) {
  Gate gate;
  {
    BackgroundTask task;
    task.start(gate.work());
    task.leave(std::chrono::milliseconds(0));
  }
  EXPECT_FALSE(gate.was_passed());

  gate.open();
  while (!gate.was_passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace sidestream::launch
