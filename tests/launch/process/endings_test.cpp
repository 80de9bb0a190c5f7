// What users of run_program() see where ranks do not end alike: one message, its code, no hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/comm/mpi_job.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t messages_in(const std::string& output) {
  constexpr std::string_view kBegin = "sidestream [rank ";
  std::size_t count = 0;
  for (std::size_t at = output.find(kBegin); at != std::string::npos;
       at = output.find(kBegin, at + 1))
    ++count;
  return count;
}

void expect_one_message(const std::string& scenario, int code, const std::string& words) {
  const Outcome outcome = run_on_two_ranks(SIDESTREAM_ENDING_PROGRAM, scenario);
  EXPECT_EQ(outcome.exit_code, code) << scenario << "\n" << outcome.output;
  EXPECT_EQ(messages_in(outcome.output), 1u) << scenario << "\n" << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(words)) << scenario;
  EXPECT_THAT(outcome.output, Not(HasSubstr("warning"))) << scenario;
}

TEST(EndingsTest, a_rank_that_returns_while_others_go_on_is_a_collective_that_failed) {
  expect_one_message("returns-early", 6, "barrier at the end of the program");
  expect_one_message("returns-a-code-early", 6, "barrier at the end of the program");
}

TEST(EndingsTest, what_is_no_exception_of_the_language_ends_all_ranks) {
  expect_one_message("throws-a-number", 1, "the program threw something that is no std::exception");
}

TEST(EndingsTest, ranks_that_return_together_say_nothing) {
  const Outcome alike = run_on_two_ranks(SIDESTREAM_ENDING_PROGRAM, "all-alike");
  EXPECT_EQ(alike.exit_code, 5) << alike.output;
  EXPECT_EQ(messages_in(alike.output), 0u) << alike.output;
  const Outcome other = run_on_two_ranks(SIDESTREAM_ENDING_PROGRAM, "other-codes");
  EXPECT_EQ(other.exit_code, 5) << other.output;
  EXPECT_EQ(messages_in(other.output), 0u) << other.output;
}

struct GuardedTest : ::testing::Test {
  Outcome run(const std::string& scenario) const {
    return run_on_two_ranks(SIDESTREAM_ENDING_PROGRAM, scenario + " " + folder.path().string());
  }
  // By name, of the one start.
  std::set<std::string> records() const {
    std::set<std::string> names;
    for (const auto& start : std::filesystem::directory_iterator(folder.path() / "flight"))
      for (const auto& file : std::filesystem::directory_iterator(start))
        names.insert(file.path().filename().string());
    return names;
  }

  core::ScratchFolder folder;
};

TEST_F(GuardedTest, rank_that_hangs_is_named_with_its_step_and_all_leave_records) {
  const Outcome outcome = run("hangs");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_EQ(messages_in(outcome.output), 1u) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("sidestream [rank 1]: step 3, "));
  EXPECT_THAT(outcome.output, HasSubstr("this rank itself hangs. A larger limit of ProgramGuard"));
  EXPECT_THAT(outcome.output, HasSubstr("rank_*.json"));
  EXPECT_EQ(records(), (std::set<std::string>{"rank_00000.json", "rank_00001.json"}));
}

TEST_F(GuardedTest, program_that_is_asked_writes_its_records_and_goes_on) {
  const Outcome outcome = run("asked");

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(records(), (std::set<std::string>{"rank_00000.json", "rank_00001.json"}));
}

}  // namespace
}  // namespace sidestream::test
