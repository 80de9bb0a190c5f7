#include "launch/watch/flight_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

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

TEST(FlightOnFailureTest, first_reason_counts) {
  const core::ScratchFolder scratch;
  const comm::FlightRecorder flights;
  const Heartbeat heartbeat;
  comm::FailureHook hook;
  FlightFile file(scratch.path() / "flight/set_up", 0, flights, heartbeat);
  std::vector<std::string> told;
  {
    FlightOnFailure on_failure(hook, file,
                               [&](std::string line) { told.push_back(std::move(line)); });
    on_failure.write("rank 0: a shard is cut short");
    hook.run();
  }
  const auto json = nlohmann::json::parse(std::ifstream(file.folder() / "rank_00000.json"));
  EXPECT_EQ(json["why"], "rank 0: a shard is cut short");
  EXPECT_EQ(told.size(), 1U);
}

}  // namespace
}  // namespace sidestream::launch
