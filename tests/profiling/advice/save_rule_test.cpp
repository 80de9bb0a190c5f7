// What saving costs: what steps wait for, and what is written beside them on processors that
// compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/advice/advice.hpp"
#include "tests/profiling/advice/facts_maker.hpp"
#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

std::string range(const std::string& name, int start_us, int length_us) {
  return test::complete_event("user_annotation", name, std::to_string(start_us),
                              std::to_string(length_us));
}

// Three steps of 80 us, each followed by a save of 20 us, and 30 us of writing in each.
std::string saving_run(const std::string& writer) {
  std::string text;
  for (int step = 0; step < 3; ++step) {
    const int start = step * 100;
    text += (step == 0 ? "" : ",") + range("ProfilerStep#" + std::to_string(step + 2), start, 80) +
            "," + range("forward", start, 80) + "," + range("checkpoint", start + 80, 20);
    if (!writer.empty()) text += "," + range(writer, start + 10, 30);
  }
  return test::trace_of(text);
}

double bound_of(const Facts& facts) { return bound_of(advise(facts), "checkpoint-in-step"); }

// 30 us of writing take 15 us of computing at most.
TEST(SaveRuleTest, half_of_what_is_written_beside_the_steps_is_in_the_bound) {
  EXPECT_NEAR(bound_of(facts_of_text(saving_run(""))), 0.2, 0.01);
  EXPECT_NEAR(bound_of(facts_of_text(saving_run("checkpoint writing"))), 0.35, 0.01);
  EXPECT_NEAR(bound_of(facts_of_text(saving_run("something else"))), 0.2, 0.01);
}

// Of every second step: saves between steps are in none of the recordings.
TEST(SaveRuleTest, what_lies_between_steps_that_do_not_follow_each_other_is_not_known) {
  const std::string every_second =
      test::trace_of(range("ProfilerStep#2", 0, 80) + "," + range("forward", 0, 80) + "," +
                     range("ProfilerStep#4", 200, 80) + "," + range("forward", 200, 80));

  EXPECT_THAT(needs_of(advise(facts_of_text(every_second)), "checkpoint-in-step"),
              ::testing::HasSubstr("follow each other"));
}

}  // namespace
}  // namespace sidestream::advice
