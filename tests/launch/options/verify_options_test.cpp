#include "launch/options/verify_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> words = {"--config", "a.cfg", "--out", "out"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string error_of(const std::vector<std::string>& words) {
  try {
    parse_verify_options(words);
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(VerifyOptionsTest, flags_in_quotes_may_be_empty_or_start_with_dashes) {
  const VerifyOptions options = parse_verify_options(with(
      {"--base", "--baseline", "--new", "", "--common", "--data 'my data' --lr 1", "-np", "2"}));

  EXPECT_THAT(options.base, ElementsAre("--baseline"));
  EXPECT_TRUE(options.fresh.empty());
  EXPECT_THAT(options.common, ElementsAre("--data", "my data", "--lr", "1"));
  EXPECT_EQ(options.ranks, 2);
}

TEST(VerifyOptionsTest, profiled_runs_are_made_unless_they_are_turned_off) {
  EXPECT_TRUE(parse_verify_options(with({})).profile);
  EXPECT_FALSE(parse_verify_options(with({"--profile", "off"})).profile);
  EXPECT_THAT(error_of(with({"--profile", "maybe"})), HasSubstr("--profile"));
}

TEST(VerifyOptionsTest, proofs_are_made_unless_they_are_turned_off) {
  EXPECT_TRUE(parse_verify_options(with({})).prove);
  EXPECT_FALSE(parse_verify_options(with({"--prove", "off"})).prove);
}

TEST(VerifyOptionsTest, what_is_missing_or_impossible_is_named) {
  EXPECT_THAT(error_of({"--out", "x"}), HasSubstr("--config is missing"));
  EXPECT_THAT(error_of({"--config", "x"}), HasSubstr("no error"));  // --out has a default
  EXPECT_THAT(error_of(with({"--blocks", "0"})), HasSubstr("--blocks"));
  EXPECT_THAT(error_of(with({"--steps", "5", "--warm-up", "5"})), HasSubstr("--warm-up"));
  EXPECT_THAT(error_of(with({"--new", "--run-dir x"})),
              HasSubstr("--run-dir is set by verify: --out"));
  EXPECT_THAT(error_of(with({"--new", "--seed=3"})), HasSubstr("--seed is set by verify"));
  EXPECT_THAT(error_of(with({"--base", "--overlap 'off"})), HasSubstr("found an open '"));
  EXPECT_THAT(error_of(with({"--base", "--data 'it\"s here'"})), HasSubstr("no error"));
}

}  // namespace
}  // namespace sidestream::launch
