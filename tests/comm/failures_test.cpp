// What users see when a rank is late, stopped, dead, or does something else than the others: the
// message, the exit code, and that the job ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/comm/mpi_job.hpp"

namespace sidestream::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class FailuresTest : public ::testing::TestWithParam<const char*> {
 protected:
  Outcome run(const std::string& scenario) const {
    return run_on_two_ranks(SIDESTREAM_FAILURE_PROGRAM, scenario + " " + GetParam());
  }
};

TEST_P(FailuresTest, wait_lateRankIsNamedAtTheDeadline) {
  const Outcome outcome = run("late");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(
      outcome.output,
      HasSubstr(
          "rank 0: all_reduce (operation 3, bucket 7, 4000 bytes): not finished after 600 ms"));
  EXPECT_THAT(outcome.output, HasSubstr("missing: rank 1"));
  EXPECT_THAT(outcome.output,
              HasSubstr("(last started operation 2). --deadline gives slow ranks more time"));
  EXPECT_LT(outcome.seconds, 15);
}

TEST_P(FailuresTest, wait_stoppedRankIsNamedAtTheDeadline) {
  const Outcome outcome = run("stopped");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("missing: rank 1"));
  EXPECT_THAT(outcome.output,
              AnyOf(HasSubstr("(last started operation 2)"), HasSubstr("(gives no sign of life)")));
}

TEST_P(FailuresTest, wait_killedRankEndsTheJob) {
  const Outcome outcome = run("killed");

  EXPECT_THAT(outcome.exit_code, AnyOf(6, 128 + 9)) << outcome.output;
  EXPECT_LT(outcome.seconds, 15);
}

// The launcher is told to let the others live: they find out by themselves.
TEST_P(FailuresTest, wait_deadPeerIsNamedWithinTwoSeconds) {
  const Outcome outcome = run_on_ranks(3, "--enable-recovery " SIDESTREAM_FAILURE_PROGRAM,
                                       std::string("killed-later ") + GetParam());

  EXPECT_THAT(outcome.output, ContainsRegex("rank 1 on .* has died: its process is gone"));
  if (std::string(GetParam()) == "on") {  // the board says so
    EXPECT_THAT(outcome.output, HasSubstr("it was in backward of step 26"));
  }
  EXPECT_THAT(outcome.output, HasSubstr("FAILED(7)"));
  EXPECT_LT(outcome.seconds, 10);
  const auto at = outcome.output.find("noticed after ");
  ASSERT_NE(at, std::string::npos) << outcome.output;
  EXPECT_LT(std::stoi(outcome.output.substr(at + 14)), 2000);
  // Not only in the words: whoever looks without a collective waits for nobody to say more.
  EXPECT_THAT(outcome.output, ContainsRegex("noticed after [0-9]+ ms, it is gone: "));
}

TEST_P(FailuresTest, wait_manyRanksGiveOneMessage) {
  const Outcome outcome =
      run_on_ranks(4, SIDESTREAM_FAILURE_PROGRAM, std::string("stopped ") + GetParam());

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  std::size_t messages = 0;
  for (auto at = outcome.output.find("FAILED(6)"); at != std::string::npos;
       at = outcome.output.find("FAILED(6)", at + 1))
    ++messages;
  EXPECT_EQ(messages, 1U) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("missing: rank 1 on "));
}

TEST_P(FailuresTest, check_collectives_differentCallsAreRefusedBeforeDataMoves) {
  for (const char* scenario : {"counts", "kinds", "buckets", "models"}) {
    const Outcome outcome = run_on_ranks(3, SIDESTREAM_FAILURE_PROGRAM,
                                         std::string(scenario) + " " + GetParam() + " checked");

    EXPECT_THAT(outcome.exit_code, AnyOf(6, 7)) << outcome.output;
    EXPECT_THAT(outcome.output, ContainsRegex("rank 1 calls [a-z_]+.*as operation 3, ranks 0, 2 "
                                              "call all_reduce of [0-9]+ float32"));
    EXPECT_THAT(outcome.output, HasSubstr("no data was moved"));
  }
}

// All payloads look alike: what an exchange is for is what tells them apart.
TEST_P(FailuresTest, check_collectives_exchangesOfOtherThingsAreRefused) {
  const Outcome outcome = run_on_ranks(3, SIDESTREAM_FAILURE_PROGRAM,
                                       std::string("exchanges ") + GetParam() + " checked");

  EXPECT_THAT(outcome.exit_code, AnyOf(6, 7)) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("rank 1 calls exchange of replica hashes as operation 3, ranks 0, 2 call "
                        "exchange of outcomes as operation 3"));
}

TEST_P(FailuresTest, check_collectives_sameCallsPass) {
  const Outcome outcome = run_on_ranks(3, SIDESTREAM_FAILURE_PROGRAM,
                                       std::string("nothing ") + GetParam() + " checked");

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_P(FailuresTest, announce_failure_peersThrowWithTheMessage) {
  const Outcome outcome = run("announces");

  EXPECT_EQ(outcome.exit_code, 7) << outcome.output;
  // Rank 0 may still be busy with the operation before.
  EXPECT_THAT(outcome.output, ContainsRegex("all_reduce .operation [23], bucket [17], 4000 bytes.: "
                                            "rank 1: the disk is full"));
}

TEST_P(FailuresTest, exception_endsTheJobWithItsCode) {
  const Outcome outcome = run("throws");

  EXPECT_THAT(outcome.exit_code, AnyOf(3, 7)) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 1: shard_7.bin is cut short"));
}

TEST_P(FailuresTest, all_reduce_differentCountsAreRefused) {
  const Outcome outcome = run("counts");

  EXPECT_THAT(outcome.exit_code, AnyOf(6, 7)) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("operation 3"));
  EXPECT_THAT(outcome.output, AnyOf(HasSubstr("all_reduce of 200 float32"),
                                    HasSubstr("bytes, expected"), HasSubstr("MPI_ERR_TRUNCATE")));
}

TEST_P(FailuresTest, all_reduce_differentOperationsAreRefused) {
  const Outcome outcome = run("kinds");

  EXPECT_THAT(outcome.exit_code, AnyOf(6, 7)) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("operation 3"));
  EXPECT_LT(outcome.seconds, 15);
}

TEST_P(FailuresTest, work_thatNobodyWaitsForStillCompletes) {
  const Outcome outcome = run("unfinished-work");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("rank 0: all_reduce (operation 4, bucket 7, 4000 bytes): not finished"));
}

TEST_P(FailuresTest, setup_rankThatDoesNotComeIsNamed) {
  for (const auto& [stage, place] :
       {std::pair("mpi", "starting MPI"), std::pair("communicator", "making the communicator")}) {
    const Outcome outcome = run(std::string("late-for-") + stage);

    EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(std::string(place) +
                                          ": not finished after 1500 ms; missing: rank 1 on "));
    EXPECT_THAT(outcome.output, HasSubstr("(has not come to it)"));
    EXPECT_LT(outcome.seconds, 15);
  }
}

TEST_P(FailuresTest, setup_stoppedRankIsNamed) {
  for (const auto& [stage, place] :
       {std::pair("mpi", "starting MPI"), std::pair("communicator", "making the communicator")}) {
    const Outcome outcome = run(std::string("stopped-before-") + stage);

    EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(std::string(place) +
                                          ": not finished after 1500 ms; missing: rank 1 on "));
    EXPECT_LT(outcome.seconds, 15);
  }
}

TEST_P(FailuresTest, exchange_rankStoppedInTheMiddleIsNamed) {
  const Outcome outcome = run("stopped-anywhere");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("not finished after 600 ms; missing: rank 1 on "));
  EXPECT_LT(outcome.seconds, 15);
}

TEST_P(FailuresTest, allocate_rankThatDoesNotComeIsNamed) {
  for (const char* scenario : {"late-for-allocate", "stopped-before-allocate"}) {
    const Outcome outcome = run(scenario);

    EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("rank 0: exchange (operation 3, "));
    EXPECT_THAT(outcome.output, HasSubstr("not finished after 1500 ms; missing: rank 1 on "));
    EXPECT_THAT(outcome.output, HasSubstr(". --setup-deadline gives slow ranks more time"));
    EXPECT_LT(outcome.seconds, 15);
  }
}

TEST_P(FailuresTest, wait_afterAFailureMpiTouchesNoBuffer) {
  const Outcome outcome = run("receives-late");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("the buffer is untouched"));
}

TEST(MpiEnvironmentTest, construct_launcherOfAnotherMpi) {
  const Outcome outcome =
      run_command("env PMI_RANK=0 PMI_SIZE=2 timeout 20 " SIDESTREAM_FAILURE_PROGRAM " none on");

  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("PMI_SIZE says 2 ranks, MPI says 1"));
}

INSTANTIATE_TEST_SUITE_P(All, FailuresTest, ::testing::Values("on", "off"), [](const auto& info) {
  return std::string(info.param) == "on" ? "sharedMemory" : "plainMpi";
});

}  // namespace
}  // namespace sidestream::test
