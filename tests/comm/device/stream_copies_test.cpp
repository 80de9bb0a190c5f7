// Copies beside the computation, on streams of a fake driver.
#include "comm/cuda/stream_copies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/comm/device/fake_driver.hpp"

namespace sidestream::comm::cuda {
namespace {

using Queue = core::CopyEngine::Queue;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class FullDriver final : public FakeDriver {
 public:
  void* allocate_pinned(std::size_t) override { throw core::MemoryError("no pinned memory"); }
};

struct StreamCopiesTest : testing::Test {
  std::shared_ptr<FakeDriver> driver = std::make_shared<FakeDriver>();
  Stream compute = driver->create_stream(Priority::kNormal);
  std::shared_ptr<core::CopyEngine> copies = make_stream_copies(
      driver, [this] { return compute; }, "--offload optimizer");
};

TEST_F(StreamCopiesTest, queues_areOrderedByMarksAlone) {
  int here = 7, there = 0, back = 0;
  driver->enqueue("kernel", compute);
  copies->hold_back(Queue::kToHost, copies->mark(Queue::kCompute));
  copies->copy(Queue::kToHost, &there, &here, sizeof(int));
  driver->enqueue("other", compute);
  EXPECT_TRUE(driver->is_after("copy", "kernel"));
  EXPECT_FALSE(driver->is_after("other", "copy"));

  copies->hold_back(Queue::kToDevice, copies->mark(Queue::kToHost));
  copies->copy(Queue::kToDevice, &back, &there, sizeof(int));
  copies->hold_back(Queue::kCompute, copies->mark(Queue::kToDevice));
  driver->enqueue("behind", compute);

  EXPECT_TRUE(driver->is_after("behind", "copy"));
  EXPECT_EQ(back, 7);
  EXPECT_EQ(driver->synchronizations, 0);
  copies->finish();
  EXPECT_EQ(driver->synchronizations, 2);
}

TEST_F(StreamCopiesTest, hostMemory_outlivesTheEngine) {
  auto memory = copies->allocate_host(100);
  copies.reset();
  EXPECT_EQ(driver->pinned_alive, 1u);
  EXPECT_EQ(driver->streams_alive, 1u) << "the test's own";

  memory.reset();

  EXPECT_EQ(driver->pinned_alive, 0u);
}

TEST_F(StreamCopiesTest, hostWithoutMemory_namesTheFlagNeedAndHave) {
  const auto full = make_stream_copies(
      std::make_shared<FullDriver>(), [this] { return compute; }, "--offload optimizer");
  try {
    full->allocate_host(std::size_t{300} << 20);
    FAIL() << "it has got memory";
  } catch (const core::MemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--offload optimizer needs 300 MiB more"));
    EXPECT_THAT(error.what(), ContainsRegex("\\([0-9]+ MiB of host memory are free, and "));
    EXPECT_THAT(error.what(), HasSubstr("may be locked (ulimit -l)"));
  }
}

}  // namespace
}  // namespace sidestream::comm::cuda
