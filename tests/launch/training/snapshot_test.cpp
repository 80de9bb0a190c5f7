#include "launch/trainer/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "core/base/error.hpp"
#include "launch/process/background_task.hpp"

namespace sidestream::launch {
namespace {

TEST(SnapshotTest, take_copiesIntoTheSameMemory) {
  const torch::Tensor weight = torch::arange(6, torch::kFloat32).view({2, 3});
  Snapshot snapshot;

  snapshot.take({{"a", weight}});
  const void* memory = snapshot.tensors()[0].tensor.const_data_ptr();
  weight.add_(1);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1][2].item<float>(), 5) << "not a copy";
  snapshot.take({{"a", weight}});

  EXPECT_EQ(snapshot.tensors()[0].tensor.const_data_ptr(), memory);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1][2].item<float>(), 6);
}

TEST(SnapshotTest, reserve_isTheMemoryOfTheFirstCopy) {
  const torch::Tensor weight = torch::ones({3});
  Snapshot snapshot;

  snapshot.reserve({{"a", weight}});
  const void* memory = snapshot.tensors()[0].tensor.const_data_ptr();
  EXPECT_EQ(snapshot.tensors()[0].tensor[1].item<float>(), 0);
  snapshot.take({{"a", weight}});

  EXPECT_EQ(snapshot.tensors()[0].tensor.const_data_ptr(), memory);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1].item<float>(), 1);
}

TEST(SnapshotTest, take_sliceBecomesContiguous) {
  Snapshot snapshot;
  snapshot.take({{"a", torch::arange(8, torch::kFloat32).view({4, 2}).slice(0, 0, 3)}});
  EXPECT_TRUE(snapshot.tensors()[0].tensor.is_contiguous());
  EXPECT_EQ(snapshot.tensors()[0].tensor.numel(), 6);
}

TEST(SnapshotTest, requireFinite_namesTheTensor) {
  Snapshot snapshot;
  const torch::Tensor bad = torch::zeros({5});
  snapshot.take({{"fine", torch::ones({3})}, {"bad", bad}});
  snapshot.require_finite(7);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    bad[4] = value;
    snapshot.take({{"fine", torch::ones({3})}, {"bad", bad}});
    try {
      snapshot.require_finite(7);
      FAIL() << "no error";
    } catch (const core::NumericsError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("step 7: not saved: bad holds values"));
    }
  }
}

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
