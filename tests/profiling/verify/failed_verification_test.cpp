#include "profiling/verify/failed_verification.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;

FailedVerification killed_base() {
  return {.settings = {.command = "sidestream verify", .base_flags = "a", .fresh_flags = "b"},
          .version = "0.1.0",
          .environment = {{"processor", "P"}, {"build", "NCCL: off\n"}},
          .run = {.name = "block 1, base",
                  .command = "sidestream train",
                  .exit_code = 137,
                  .last_lines = {"step 3", "<signal 9> & gone"},
                  .log = "runs/block_001_base.log"},
          .reason = "the run of block 1, base failed with exit code 137",
          .exit_code = 137};
}

TEST(FailedVerificationTest, every_form_says_which_run_failed_and_what_it_printed_last) {
  const FailedVerification one = killed_base();

  for (const std::string& text : {failure_markdown(one), failure_text(one), failure_html(one)})
    for (const char* wanted :
         {"none: a run did not end", "block 1, base", "exit code 137", "sidestream train", "step 3",
          "block_001_base.log", "Sidestream 0.1.0", "processor: P", "NCCL: off"})
      EXPECT_THAT(text, HasSubstr(wanted));
  EXPECT_THAT(failure_html(one), HasSubstr("&lt;signal 9&gt; &amp; gone"));
}

TEST(FailedVerificationTest, json_has_no_verdict_and_the_exit_code) {
  const auto json = nlohmann::json::parse(failure_json(killed_base()));

  EXPECT_EQ(json.at("kind"), "verification");
  EXPECT_EQ(json.at("step_time").at("verdict"), "none");
  EXPECT_EQ(json.at("decision").at("accepted"), false);
  EXPECT_EQ(json.at("decision").at("exit_code"), 137);
  EXPECT_EQ(json.at("failure").at("last_lines").size(), 2u);
  EXPECT_EQ(json.at("version"), "0.1.0");
  EXPECT_EQ(json.at("environment").at("processor"), "P");
}

TEST(FailedVerificationTest, text_fits_into_100_columns) {
  FailedVerification one = killed_base();
  std::string words;
  for (int i = 0; i < 40; ++i) words += "--word " + std::to_string(i) + " ";
  for (std::string* text : {&one.settings.command, &one.settings.base_flags, &one.run.command,
                            &one.reason, &one.run.last_lines.back(), &one.environment["build"]})
    *text += words;

  std::istringstream lines(failure_text(one));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(FailedVerificationTest, a_run_that_printed_nothing) {
  FailedVerification one = killed_base();
  one.run.last_lines.clear();

  EXPECT_THAT(failure_text(one), HasSubstr("(nothing)"));
}

}  // namespace
}  // namespace sidestream::verify
