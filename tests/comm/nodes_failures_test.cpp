// What users see when a rank of another node dies, or the network between nodes goes silent: hosts
// that run_in_namespaces.sh makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/comm/mpi_job.hpp"

namespace sidestream::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// The launcher is told to let the others live, where they are to find out by themselves.
Outcome run_on_nodes(const std::string& ranks, const std::string& scenario,
                     const std::string& limits = "timeout 40") {
  return run_command(limits + " " SIDESTREAM_NODES_SCRIPT " " SIDESTREAM_MPIEXEC " " + ranks +
                     " --enable-recovery " SIDESTREAM_FAILURE_PROGRAM " " + scenario);
}

void expect_noticed_within_two_seconds(const Outcome& outcome, const std::string& victim) {
  EXPECT_THAT(outcome.output, ContainsRegex(victim + " on .* has died: its process is gone"));
  EXPECT_THAT(outcome.output, HasSubstr("FAILED(7)"));
  int noticed = 0;
  for (auto at = outcome.output.find("noticed after "); at != std::string::npos;
       at = outcome.output.find("noticed after ", at + 1)) {
    EXPECT_LT(std::stoi(outcome.output.substr(at + 14)), 2000) << outcome.output;
    ++noticed;
  }
  EXPECT_GE(noticed, 1) << outcome.output;
  EXPECT_LT(outcome.seconds, 20);
}

TEST(NodesFailuresTest, wait_deadPeerOfAnotherNodeIsNamedWithinTwoSeconds) {
  const Outcome outcome = run_on_nodes("1 1", "killed-later on");

  expect_noticed_within_two_seconds(outcome, "rank 1");
  EXPECT_THAT(outcome.output, HasSubstr("its connection was closed without a goodbye"));
}

TEST(NodesFailuresTest, wait_deadFirstRankIsNamedByTheOtherNode) {
  expect_noticed_within_two_seconds(run_on_nodes("1 1", "first-killed-later on"), "rank 0");
}

// Not the one that has the line to the first rank: the other node hears of it.
TEST(NodesFailuresTest, wait_deadPeerBesideOthersIsToldToTheOtherNode) {
  expect_noticed_within_two_seconds(run_on_nodes("2 2", "killed-later on"), "rank 1");
}

// Nothing says that the other node is gone, so the deadline has to. (Open MPI's launcher waits for
// that node for ever: launch/run ends it, here the script does.)
TEST(NodesFailuresTest, wait_silentCableIsNoticedByTheDeadline) {
  const std::filesystem::path runs =
      std::filesystem::path(::testing::TempDir()) / ("runs." + std::to_string(getpid()));
  const Outcome outcome = run_on_nodes(
      "1 1", "for-ever on",
      "env SIDESTREAM_TEST_RUNS=" + runs.string() + " SIDESTREAM_LINK_SILENT_WHEN='until [ -e " +
          runs.string() + " ]; do sleep 0.1; done' SIDESTREAM_LINK_SILENT_FOR=6 timeout 60");
  std::filesystem::remove(runs);

  EXPECT_THAT(outcome.output,
              ContainsRegex("rank 0: exchange.*not finished after 600 ms; missing: rank 1 on "));
  EXPECT_THAT(outcome.output, HasSubstr("(gives no sign of life)"));
}

// As in a container for each rank: the number of rank 1 is that of a `sleep` for rank 0.
TEST(NodesFailuresTest, processNumbersOfAnotherContainerAreNotWatched) {
  const std::string container = " -np 1 unshare --pid --fork --mount-proc sh -c '";
  const std::string program = SIDESTREAM_FAILURE_PROGRAM " for-ever on; exit $?'";
  const Outcome outcome =
      run_command("timeout 6 " SIDESTREAM_MPIEXEC " --oversubscribe --bind-to none" + container +
                  "sleep 2 & " + program + " :" + container + program);

  EXPECT_EQ(outcome.output.find("has died"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.exit_code, 124) << outcome.output;  // ran until it was ended
}

}  // namespace
}  // namespace sidestream::test
