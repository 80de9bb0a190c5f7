#include "core/data/fingerprint.hpp"

#include <gtest/gtest.h>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data {
namespace {

using testing::counting;
using testing::llm_c_bytes;
using testing::write_bytes;

class FingerprintTest : public ::testing::Test {
 protected:
  void shard(const std::string& name, const std::vector<std::uint16_t>& tokens) {
    write_bytes(folder_ / name, llm_c_bytes(tokens));
  }
  std::string print(Split split = Split::kTrain) const {
    return fingerprint_of(TokenStream::open(folder_.path(), split));
  }
  core::ScratchFolder folder_;
};

TEST_F(FingerprintTest, the_same_tokens_have_one_however_they_are_stored) {
  shard("train_0.bin", counting(7, 30'000));
  const std::string whole = print();
  EXPECT_EQ(whole.size(), 16u);
  EXPECT_EQ(whole.find_first_not_of("0123456789abcdef"), std::string::npos);

  shard("train_0.bin", counting(7, 11'000));
  shard("train_1.bin", counting(11'007, 19'000));
  EXPECT_EQ(print(), whole);

  const auto narrow = counting(7, 30'000);
  write_bytes(folder_ / "val.bin",
              llm_c_bytes(std::vector<std::uint32_t>(narrow.begin(), narrow.end())));
  EXPECT_EQ(print(Split::kValidation), whole);
}

TEST_F(FingerprintTest, other_tokens_have_another_one) {
  const auto of = [this](const std::vector<std::uint16_t>& tokens) {
    shard("train_0.bin", tokens);
    return print();
  };
  auto tokens = counting(0, 2'000);  // fewer than are looked at: every one counts
  const std::string before = of(tokens);
  for (const std::size_t changed : {std::size_t{0}, std::size_t{777}, tokens.size() - 1}) {
    auto other = tokens;
    other[changed] ^= 1;
    EXPECT_NE(of(other), before) << changed;
  }
  EXPECT_NE(of(counting(0, 2'001)), before);
  EXPECT_NE(of(counting(0, 1)), of(counting(1, 1)));
}

}  // namespace
}  // namespace sidestream::data
