#include "launch/process/watchdog.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/file.hpp"
#include "launch/process/thread_stacks.hpp"
#include "launch/recording/flight_file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
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

struct WatchdogTest : ::testing::Test {
  LoneRank rank;
  Heartbeat heartbeat;
  std::mutex mutex;
  std::condition_variable changed;
  std::string message;
  Watchdog watchdog{heartbeat, rank,
                    Timeouts{.setup = milliseconds(60'000),
                             .step = milliseconds(500),
                             .checkpoint = milliseconds(1500),
                             .evaluation = milliseconds(60'000)},
                    [this](const std::string& text) {
                      const std::lock_guard lock(mutex);
                      message = text;
                      changed.notify_all();
                    }};

  std::string message_within(milliseconds limit) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, limit, [this] { return !message.empty(); });
    return message;
  }
};

TEST_F(WatchdogTest, timeout_namesStepAndPhase) {
  heartbeat.beat(ranges::Phase::kData, 7);

  EXPECT_THAT(message_within(milliseconds(20'000)),
              HasSubstr("step 7, data: not finished after 500 ms, and no collective is in flight"));
  EXPECT_THAT(message, HasSubstr("--timeout-step"));
}

TEST_F(WatchdogTest, noTimeout_whileItBeatsOrWaitsForPeersOrRests) {
  for (int step = 1; step <= 10; ++step) {
    heartbeat.beat(ranges::Phase::kForward, step);
    EXPECT_EQ(message_within(milliseconds(120)), "");
  }
  rank.in_flight = true;
  EXPECT_EQ(message_within(milliseconds(1500)), "");
  heartbeat.rest();
  rank.in_flight = false;
  EXPECT_EQ(message_within(milliseconds(1500)), "");
}

TEST_F(WatchdogTest, timeout_isThatOfThePhase) {
  const auto begin = std::chrono::steady_clock::now();
  heartbeat.beat(ranges::Phase::kCheckpoint, 7);

  EXPECT_THAT(message_within(milliseconds(20'000)), HasSubstr("--timeout-checkpoint"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1500));
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

[[gnu::noinline]] void wait_here(std::atomic<bool>& stop) {
  while (!stop) std::this_thread::sleep_for(milliseconds(10));
}

TEST(ThreadStacksTest, take_everyThreadByName) {
  const ThreadStacks stacks;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    pthread_setname_np(pthread_self(), "waits-here");
    wait_here(stop);
  });
  std::vector<std::string> names;
  std::size_t calls = 0;
  for (int attempt = 0; attempt < 500 && calls == 0; ++attempt) {
    std::this_thread::sleep_for(milliseconds(10));  // until it has its name
    names.clear();
    for (const ThreadStack& stack : stacks.take()) {
      for (const std::string& call : stack.calls)
        EXPECT_FALSE(call.starts_with("/")) << call << ": a folder of this machine";
      names.push_back(stack.name);
      if (stack.name == "waits-here") calls = stack.calls.size();
    }
  }
  stop = true;
  other.join();

  EXPECT_THAT(names, Contains("waits-here"));
  EXPECT_GT(calls, 2U);
}

TEST(FlightFileTest, write_collectivesAndThreads) {
  const core::ScratchFolder scratch;
  comm::FlightRecorder flights;
  flights.note(comm::FlightPlane::kHost,
               {.kind = comm::CallKind::kAllReduce, .sequence = 12, .bytes = 400, .bucket = 3},
               comm::FlightState::kQueued);
  Heartbeat heartbeat;
  heartbeat.beat(ranges::Phase::kBackward, 26);
  const std::filesystem::path folder = scratch.path() / "flight/set_up";
  FlightFile file(folder, 1, flights, heartbeat);

  const FlightFile::Outcome outcome = file.write("a test");

  EXPECT_TRUE(outcome.written);
  EXPECT_THAT(outcome.line, HasSubstr((folder / "rank_*.json").string()));
  EXPECT_THAT(outcome.line, HasSubstr("report " + scratch.path().string() + "`"));
  const auto json = nlohmann::json::parse(std::ifstream(folder / "rank_00001.json"));
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["why"], "a test");
  EXPECT_EQ(json["step"], 26);
  EXPECT_EQ(json["phase"], "backward");
  EXPECT_EQ(json["collectives"][0]["operation"], "all_reduce");
  EXPECT_EQ(json["collectives"][0]["bucket"], 3);
  EXPECT_EQ(json["collectives"][0]["state"], "queued");
  EXPECT_TRUE(json["collectives"][0]["started_s_ago"].is_null());
  EXPECT_GE(json["threads"].size(), 1U);
}

// A pipe that nobody reads is opened for ever, as a file of a dead file system.
TEST(FlightFileTest, write_comesBackFromAFileSystemThatHangs) {
  const core::ScratchFolder scratch;
  const comm::FlightRecorder flights;
  const Heartbeat heartbeat;
  const std::filesystem::path folder = scratch.path() / "flight/set_up";
  const std::filesystem::path pipe = folder / "rank_00001.json";
  std::filesystem::create_directories(folder);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  FlightFile file(folder, 1, flights, heartbeat);

  const FlightFile::Outcome outcome = file.write("a test");

  EXPECT_FALSE(outcome.written);
  EXPECT_THAT(outcome.line, HasSubstr("not finished after 3000 ms, its file system hangs"));
  const core::UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  bool written = false;  // once the one that was left behind has come back
  for (int attempt = 0; attempt < 1000 && !written; ++attempt) {
    std::this_thread::sleep_for(milliseconds(10));
    written = file.write("a test").written;
  }
  EXPECT_TRUE(written);
}

TEST(FlightFileTest, write_notThroughALink) {
  const core::ScratchFolder scratch;
  const comm::FlightRecorder flights;
  const Heartbeat heartbeat;
  std::filesystem::create_directories(scratch / "outside");
  std::filesystem::create_directories(scratch / "a/flight");
  std::filesystem::create_directories(scratch / "b");
  std::filesystem::create_directory_symlink(scratch / "outside", scratch / "a/flight/set_up");
  std::filesystem::create_directory_symlink(scratch / "outside", scratch / "b/flight");
  for (const char* run : {"a", "b"}) {
    FlightFile file(scratch / run / "flight/set_up", 1, flights, heartbeat);

    const FlightFile::Outcome outcome = file.write("a test");

    EXPECT_FALSE(outcome.written);
    EXPECT_THAT(outcome.line, HasSubstr("is a link, which a run does not follow"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "outside"));
}

TEST(FlightFileTest, write_whereNothingCanBe) {
  const comm::FlightRecorder flights;
  const Heartbeat heartbeat;
  FlightFile file("/proc/run/flight/set_up", 1, flights, heartbeat);

  const FlightFile::Outcome outcome = file.write("a test");

  EXPECT_FALSE(outcome.written);
  EXPECT_THAT(outcome.line, HasSubstr("what this rank was doing could not be written: "));
}

}  // namespace
}  // namespace sidestream::launch
