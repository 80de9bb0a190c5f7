#include "launch/process/watchdog.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/file.hpp"
#include "core/base/worker_thread.hpp"
#include "launch/process/thread_stacks.hpp"
#include "launch/recording/flight_file.hpp"
#include "tests/core/base/scratch_folder.hpp"

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
                              .step = milliseconds(500),
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

// Of the thread with this name, once `is_it` likes it.
template <typename Predicate>
ThreadStack stack_of(const std::string& name, const ThreadStacks& stacks, Predicate is_it) {
  ThreadStack found;
  for (int attempt = 0; attempt < 500 && !is_it(found); ++attempt) {
    std::this_thread::sleep_for(milliseconds(10));  // until it has its name
    for (ThreadStack& stack : stacks.take()) {
      for (const std::string& call : stack.calls)
        EXPECT_FALSE(call.starts_with("/")) << call << ": a folder of this machine";
      if (stack.name == name) found = std::move(stack);
    }
  }
  return found;
}

bool has_calls(const ThreadStack& stack) { return stack.calls.size() > 2; }

TEST(ThreadStacksTest, take_everyThreadByName) {
  const ThreadStacks stacks;
  std::atomic<bool> stop{false};
  std::thread plain([&] {
    core::name_this_thread("waits-here");
    wait_here(stop);
  });
  std::thread worker([&] {
    core::become_worker_thread("ss-waits");
    wait_here(stop);
  });
  const ThreadStack of_plain = stack_of("waits-here", stacks, has_calls);
  const ThreadStack of_worker = stack_of("ss-waits", stacks, has_calls);
  stop = true;
  plain.join();
  worker.join();

  EXPECT_GT(of_plain.calls.size(), 2U);
  EXPECT_GT(of_worker.calls.size(), 2U) << "takes no signal: " << of_worker.state;
  EXPECT_EQ(of_worker.state, "");
}

// The kernel keeps a thread from its signals until its child ends or executes a program, as it does
// while a file system does not answer.
void wait_for_a_child(int read_end) {
  const long child =
      ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    char byte = 0;
    ::syscall(SYS_read, read_end, &byte, 1);
    ::syscall(SYS_exit_group, 0);
  }
  ::waitpid(static_cast<pid_t>(child), nullptr, 0);
}

TEST(ThreadStacksTest, take_stateOfAThreadThatTheKernelHolds) {
  const ThreadStacks stacks;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const core::UniqueFd read_end(ends[0]), write_end(ends[1]);
  std::thread held([&] {
    core::name_this_thread("in-the-kernel");
    wait_for_a_child(read_end.get());
  });

  const ThreadStack stack = stack_of(
      "in-the-kernel", stacks, [](const ThreadStack& seen) { return seen.state.starts_with("D"); });
  core::write_all(write_end.get(), "x", "pipe");
  held.join();

  EXPECT_THAT(stack.state, HasSubstr("D (disk sleep)"));
  EXPECT_TRUE(stack.calls.empty());
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
