#include "core/data/token_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kNow = std::chrono::steady_clock::time_point::min();  // is over at once

struct TokenCheckTest : ::testing::Test {
  void shard(const std::string& name, const std::vector<std::uint16_t>& tokens) {
    testing::write_bytes(folder.path() / name, testing::llm_c_bytes(tokens));
  }
  TokenStream stream() const { return TokenStream::open(folder.path(), Split::kTrain); }

  core::ScratchFolder folder;
};

std::string problem_with(const TokenStream& stream, const TokenCheckConfig& config) {
  try {
    check_token_ids(stream, config);
    return "";
  } catch (const core::DataError& error) {
    return error.what();
  }
}

TEST_F(TokenCheckTest, the_first_bad_id_is_named_whatever_the_threads) {
  std::vector<std::uint16_t> tokens(3'000'000, 5);
  shard("train_0.bin", testing::counting(0, 100));
  tokens[1'500'001] = 300;
  tokens[2'900'000] = 400;
  shard("train_1.bin", tokens);

  for (const int threads : {1, 2, 4}) {
    EXPECT_THAT(problem_with(stream(), {.vocab_size = 257, .threads = threads}),
                AllOf(HasSubstr("train_1.bin, byte " + std::to_string(1024 + 2 * 1'500'001)),
                      HasSubstr("vocabulary size 257"), HasSubstr("id 300")));
  }
  EXPECT_EQ(problem_with(stream(), {.vocab_size = 401, .threads = 2}), "");
}

TEST_F(TokenCheckTest, parts_cover_everything) {
  std::vector<std::uint16_t> tokens(5'000'000, 5);
  tokens[4'999'999] = 300;
  shard("train_1.bin", tokens);

  int found = 0;
  for (std::uint64_t part = 0; part < 3; ++part)
    found += !problem_with(stream(), {.vocab_size = 257, .part = part, .parts = 3}).empty();

  EXPECT_EQ(found, 1);
}

// So that the caller can say in between that it goes on.
TEST_F(TokenCheckTest, goes_on_where_its_time_was_over_until_all_is_looked_at) {
  std::vector<std::uint16_t> tokens(5 << 20, 5);
  shard("train_0.bin", tokens);
  const TokenStream good = stream();

  for (const int threads : {1, 3}) {
    TokenCheck check(good, {.vocab_size = 257, .threads = threads});
    ASSERT_EQ(check.pieces(), 5u);
    for (std::uint64_t done = 1; done <= 5; ++done) {
      EXPECT_EQ(check.go_on(kNow), done == 5);
      EXPECT_EQ(check.done(), done);
    }
    EXPECT_TRUE(check.go_on(kNow));
  }
}

TEST_F(TokenCheckTest, a_later_part_finds_the_bad_id) {
  std::vector<std::uint16_t> tokens(3 << 20, 5);
  tokens.back() = 300;
  shard("train_0.bin", tokens);
  const TokenStream bad = stream();

  TokenCheck check(bad, {.vocab_size = 257});

  EXPECT_FALSE(check.go_on(kNow));
  EXPECT_FALSE(check.go_on(kNow));
  EXPECT_THROW(check.go_on(kNow), core::DataError);
}

TEST_F(TokenCheckTest, a_split_whose_ids_all_fit_needs_no_look) {
  shard("train_0.bin", {65535, 1});
  const TokenStream narrow = stream();

  TokenCheck check(narrow, {.vocab_size = 65536});

  EXPECT_EQ(check.pieces(), 0u);
  EXPECT_TRUE(check.go_on(kNow));
}

}  // namespace
}  // namespace sidestream::data
