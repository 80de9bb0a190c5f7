// What users see when a rank of another node dies, or the network between nodes goes silent: hosts
// that run_in_namespaces.sh makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/comm/mpi_job.hpp"
#include "tests/core/base/scratch_folder.hpp"

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

// Not the one that has the line to the first rank: the other node hears of it, from rank 0.
TEST(NodesFailuresTest, wait_deadPeerBesideOthersIsToldToTheOtherNode) {
  const Outcome outcome = run_on_nodes("2 2", "killed-later on");

  expect_noticed_within_two_seconds(outcome, "rank 1");
  std::size_t told = 0;
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("noticed after ") == std::string::npos) continue;
    EXPECT_THAT(line, ContainsRegex("rank 1 on .* has died: its process is gone"));
    ++told;
  }
  EXPECT_EQ(told, 3u) << outcome.output;
}

// It says itself what happened, at once, and its code is that of the job.
TEST(NodesFailuresTest, announce_failure_endsWhatItsOwnRankHasInFlight) {
  const Outcome outcome = run_on_nodes("1 1", "fails-in-flight on");

  EXPECT_THAT(outcome.output, HasSubstr("told its peers that it failed: rank 1: shard_7.bin"));
  EXPECT_THAT(outcome.output, HasSubstr("FAILED(3): rank 1: shard_7.bin is cut short"));
  EXPECT_THAT(outcome.output, ContainsRegex("FAILED.7.: .*rank 1: shard_7.bin is cut short"));
}

// Nothing says that the other node is gone, so the deadline has to. (Open MPI's launcher waits for
// that node for ever: launch/run ends it, here the script does.)
TEST(NodesFailuresTest, wait_silentCableIsNoticedByTheDeadline) {
  const core::ScratchFolder folder;
  const std::string runs = (folder / "runs").string();
  const Outcome outcome = run_on_nodes(
      "1 1", "for-ever on",
      "env SIDESTREAM_TEST_RUNS=" + runs + " SIDESTREAM_LINK_SILENT_WHEN='until [ -e " + runs +
          " ]; do sleep 0.1; done' SIDESTREAM_LINK_SILENT_FOR=6 timeout 60");

  EXPECT_THAT(outcome.output,
              ContainsRegex("rank 0: exchange.*not finished after 600 ms; missing: rank 1 on "));
  EXPECT_THAT(outcome.output, HasSubstr("(gives no sign of life)"));
}

// Ranks with process numbers of their own, as in a container for each. `beside`: what the container
// of rank 0 starts first, with the number that the process of rank 1 has in its own. (Open MPI 4.1
// breaks down where two ranks have the same.)
std::string in_containers(const std::string& beside, const std::string& scenario) {
  const std::string container = " -np 1 unshare --pid --fork --mount-proc sh -c '";
  const std::string program = SIDESTREAM_FAILURE_PROGRAM " " + scenario + " on; exit $?'";
  return SIDESTREAM_MPIEXEC " --oversubscribe --bind-to none --enable-recovery" + container +
         beside + program + " :" + container + program;
}

TEST(ContainersTest, processNumbersOfAnotherContainerAreNotWatched) {
  const core::ScratchFolder folder;
  const std::string runs = (folder / "runs").string();
  const std::string until_it_runs = "until [ -e " + runs + " ]; do sleep 0.1; done";
  const Outcome outcome = run_command(
      "export SIDESTREAM_TEST_RUNS=" + runs + "; timeout 60 " +
      in_containers("(" + until_it_runs + ") & ", "for-ever") + " & job=$!; " + until_it_runs +
      "; sleep 3; kill -0 $job && echo still there; kill $job; wait $job");

  EXPECT_THAT(outcome.output, HasSubstr("still there"));
  EXPECT_EQ(outcome.output.find("FAILED"), std::string::npos) << outcome.output;
}

TEST(ContainersTest, deadPeerOfAnotherContainerIsNamedWithinTwoSeconds) {
  const Outcome outcome = run_command("timeout 40 " + in_containers("sleep 60 & ", "killed-later"));

  expect_noticed_within_two_seconds(outcome, "rank 1");
  EXPECT_THAT(outcome.output, HasSubstr("its connection was closed without a goodbye"));
}

}  // namespace
}  // namespace sidestream::test
