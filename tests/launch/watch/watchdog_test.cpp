#include "launch/watch/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "launch/watch/overdue.hpp"

namespace sidestream::launch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A rank of which only the watchdog's question matters.
class LoneRank final : public comm::Communicator {
 public:
  std::atomic<bool> in_flight{false};

  const comm::Topology& topology() const noexcept override { return topology_; }
  std::string_view backend_name() const noexcept override { return "lone"; }
  bool is_in_flight() const noexcept override { return in_flight; }
  comm::Work all_reduce(void*, std::size_t, core::DType, const comm::CollectiveOptions&) override {
    return {};
  }
  comm::Work reduce_scatter(const void*, void*, std::size_t, core::DType,
                            const comm::CollectiveOptions&) override {
    return {};
  }
  comm::Work all_gather(const void*, void*, std::size_t, core::DType,
                        const comm::CollectiveOptions&) override {
    return {};
  }
  comm::Work broadcast(void*, std::size_t, core::DType, int,
                       const comm::CollectiveOptions&) override {
    return {};
  }
  void barrier(const comm::CollectiveOptions&) override {}
  std::vector<std::string> exchange(std::string_view, const comm::CollectiveOptions&) override {
    return {};
  }
  comm::Allocation allocate(std::size_t) override { return {}; }
  void announce_failure(std::string_view) noexcept override {}

 private:
  comm::Topology topology_;
};

constexpr Timeouts kLimits = {.setup = milliseconds(60'000),
                              .step = milliseconds(1000),
                              .checkpoint = milliseconds(1500),
                              .evaluation = milliseconds(60'000)};

struct WatchdogTest : ::testing::Test {
  explicit WatchdogTest(const Timeouts& limits = kLimits)
      : watchdog(heartbeat, rank, limits, [this](const std::string& text) {
          const std::lock_guard lock(mutex);
          message = text;
          changed.notify_all();
        }) {}

  LoneRank rank;
  Heartbeat heartbeat;
  std::mutex mutex;
  std::condition_variable changed;
  std::string message;
  Watchdog watchdog;

  std::string message_within(milliseconds limit) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, limit, [this] { return !message.empty(); });
    return message;
  }
};

TEST_F(WatchdogTest, timeout_namesStepAndPhase) {
  heartbeat.beat(ranges::Phase::kData, 7);

  EXPECT_THAT(
      message_within(milliseconds(20'000)),
      HasSubstr("step 7, data: not finished after 1000 ms, and no collective is in flight"));
  EXPECT_THAT(message, HasSubstr("--timeout-step"));
}

TEST_F(WatchdogTest, noTimeout_whileItBeatsOrWaitsForPeersOrRests) {
  for (int step = 1; step <= 10; ++step) {
    heartbeat.beat(ranges::Phase::kForward, step);
    EXPECT_EQ(message_within(milliseconds(200)), "");
  }
  rank.in_flight = true;
  EXPECT_EQ(message_within(milliseconds(2500)), "");
  heartbeat.rest();
  rank.in_flight = false;
  EXPECT_EQ(message_within(milliseconds(2500)), "");
}

TEST_F(WatchdogTest, timeout_isThatOfThePhase) {
  const auto begin = std::chrono::steady_clock::now();
  heartbeat.beat(ranges::Phase::kCheckpoint, 7);

  EXPECT_THAT(message_within(milliseconds(20'000)), HasSubstr("--timeout-checkpoint"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1500));
}

struct SlowRestoreTest : WatchdogTest {
  SlowRestoreTest()
      : WatchdogTest({.setup = milliseconds(500),
                      .step = milliseconds(500),
                      .checkpoint = milliseconds(60'000),
                      .evaluation = milliseconds(500)}) {}
};

TEST_F(SlowRestoreTest, noTimeout_whileACheckpointIsReadInTheSetUp) {
  heartbeat.beat(ranges::Phase::kCheckpoint, 0);
  EXPECT_EQ(message_within(milliseconds(1500)), "");

  heartbeat.beat(ranges::Phase::kData, 0);
  EXPECT_THAT(message_within(milliseconds(20'000)), HasSubstr("--timeout-setup"));
}

// A save may begin between the two reads of the first look: expected, and no sign of it counted
// yet.
TEST(OverdueTest, firstLook_startsTheClock) {
  Overdue overdue;
  EXPECT_FALSE(overdue.look(0, true, milliseconds(60'000)));
  EXPECT_FALSE(overdue.look(0, true, milliseconds(60'000)));
}

TEST_F(WatchdogTest, timeout_ofASaveBesideTraining) {
  const auto begin = std::chrono::steady_clock::now();
  heartbeat.note_save(7);
  while (std::chrono::steady_clock::now() - begin < milliseconds(1000)) {
    heartbeat.beat(ranges::Phase::kForward, 8);
    EXPECT_EQ(message_within(milliseconds(100)), "");
  }
  heartbeat.rest();

  EXPECT_THAT(message_within(milliseconds(20'000)), HasSubstr("the save of step 7, which is"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1500));
}

TEST_F(WatchdogTest, noTimeout_ofSavesThatEnd) {
  for (int step = 1; step <= 3; ++step) {
    heartbeat.note_save(step);
    EXPECT_EQ(message_within(milliseconds(800)), "");
    heartbeat.note_save(0);
  }
  EXPECT_EQ(message_within(milliseconds(1800)), "");
}

}  // namespace
}  // namespace sidestream::launch
