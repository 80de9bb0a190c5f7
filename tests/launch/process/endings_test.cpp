// What users of run_program() see where ranks do not end alike: one message, its code, no hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/comm/mpi_job.hpp"

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

}  // namespace
}  // namespace sidestream::test
