#include "core/data/token_shard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/data/shard_writer.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data {
namespace {

using core::ScratchFolder;
using ::testing::AllOf;
using testing::counting;
using ::testing::HasSubstr;
using testing::llm_c_bytes;
using testing::raw_tokens;
using testing::write_bytes;

std::vector<std::int64_t> tokens_of(const TokenShard& shard) {
  std::vector<std::int64_t> tokens(shard.size());
  shard.copy(0, tokens);
  return tokens;
}

class TokenShardTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& bytes) {
    const auto path = folder_.path() / name;
    write_bytes(path, bytes);
    return path;
  }

  std::string error_of(const std::string& name, const std::string& bytes) {
    try {
      const TokenShard shard(file(name, bytes));
    } catch (const core::DataError& error) {
      return error.what();
    }
    return "";
  }

  ScratchFolder folder_;
};

TEST_F(TokenShardTest, open_llmC16) {
  const TokenShard shard(file("a_train_0.bin", llm_c_bytes<std::uint16_t>({1, 2, 65535})));

  EXPECT_EQ(shard.format(), ShardFormat::kLlmC);
  EXPECT_EQ(shard.token_bytes(), 2u);
  EXPECT_THAT(tokens_of(shard), ::testing::ElementsAre(1, 2, 65535));
  EXPECT_EQ(shard.offset_bytes(2), 1028u);
}

TEST_F(TokenShardTest, open_llmC32) {
  const TokenShard shard(
      file("a_train_0.bin", llm_c_bytes<std::uint32_t>({1, 128255, 4294967295u})));

  EXPECT_EQ(shard.token_bytes(), 4u);
  EXPECT_THAT(tokens_of(shard), ::testing::ElementsAre(1, 128255, 4294967295));
}

TEST_F(TokenShardTest, open_nanoGptByName) {
  const std::vector<std::uint16_t> tokens{50256, 11, 12};

  for (const char* name : {"train.bin", "val.bin", "web_train.nanogpt.bin"}) {
    const TokenShard shard(file(name, raw_tokens(tokens)));

    EXPECT_EQ(shard.format(), ShardFormat::kNanoGpt);
    EXPECT_THAT(tokens_of(shard), ::testing::ElementsAre(50256, 11, 12));
  }
}

TEST_F(TokenShardTest, open_rawTokensUnderAnotherName) {
  EXPECT_THAT(error_of("x_train_0.bin", raw_tokens<std::uint16_t>({7, 0, 9, 9})),
              AllOf(HasSubstr("x_train_0.bin, byte 0"), HasSubstr("20240520"), HasSubstr("found 7"),
                    HasSubstr("nanogpt")));
}

TEST_F(TokenShardTest, open_damagedMagicUnderNanoGptName) {
  std::string bytes = llm_c_bytes<std::uint16_t>({1, 2, 3});
  bytes[0] = static_cast<char>(bytes[0] ^ 1);

  EXPECT_THAT(error_of("train.bin", bytes), HasSubstr("found 20240521"));
}

TEST_F(TokenShardTest, open_llmCFileOfAnotherKind) {
  std::string bytes = llm_c_bytes<std::uint16_t>({1, 2, 3});
  const std::int32_t magic = 20240326;
  std::memcpy(bytes.data(), &magic, 4);

  EXPECT_THAT(error_of("model_train.bin", bytes), HasSubstr("model weights"));
}

TEST_F(TokenShardTest, open_badFiles) {
  const std::string good = llm_c_bytes<std::uint16_t>({1, 2, 3});

  EXPECT_THAT(error_of("train.bin", ""), HasSubstr("an empty file"));
  EXPECT_THAT(error_of("train.bin", "abc"), AllOf(HasSubstr("byte 2"), HasSubstr("odd size of 3")));
  EXPECT_THAT(error_of("t_train.bin", good.substr(0, 700)),
              AllOf(HasSubstr("byte 700"), HasSubstr("1024")));
  EXPECT_THAT(error_of("t_train.bin", good.substr(0, good.size() - 1)),
              AllOf(HasSubstr("byte 8"), HasSubstr("1030 bytes"), HasSubstr("1029 bytes")));
  EXPECT_THAT(error_of("t_train.bin", good + "xy"), HasSubstr("1032 bytes"));
  EXPECT_THROW(TokenShard(folder_.path() / "missing.bin"), core::DataError);
  EXPECT_THROW(TokenShard(folder_.path()), core::DataError);
}

TEST_F(TokenShardTest, open_wrongVersion) {
  std::string bytes = llm_c_bytes<std::uint16_t>({1, 2, 3});
  bytes[4] = 7;

  EXPECT_THAT(
      error_of("t_train.bin", bytes),
      AllOf(HasSubstr("byte 4"), HasSubstr("version 1 (uint16 ids)"), HasSubstr("version 7")));
}

TEST_F(TokenShardTest, open_countThatIsNotPositive) {
  std::string bytes = llm_c_bytes<std::uint16_t>({1, 2, 3});
  bytes[11] = static_cast<char>(0x80);

  EXPECT_THAT(error_of("t_train.bin", bytes), HasSubstr("a positive number of tokens"));
}

// Whatever byte is damaged or wherever the file ends: the same tokens, or a DataError.
TEST_F(TokenShardTest, open_everyHeaderByteFlipped) {
  const std::string good = llm_c_bytes<std::uint16_t>({1, 2, 3});
  for (std::size_t i = 0; i < 1024; ++i) {
    for (const int mask : {0x01, 0x80, 0xFF}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      const auto path = file("train.bin", bytes);
      try {
        EXPECT_THAT(tokens_of(TokenShard(path)), ::testing::ElementsAre(1, 2, 3)) << "byte " << i;
        EXPECT_GE(i, 12u);
      } catch (const core::DataError&) {
        EXPECT_LT(i, 12u);
      }
    }
  }
}

TEST_F(TokenShardTest, open_everyTruncation) {
  const std::string good = llm_c_bytes<std::uint32_t>({1, 2, 3});
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(error_of("a_train.bin", good.substr(0, length)), "") << length;
  }
}

TEST_F(TokenShardTest, findNotBelow_firstOfSeveral) {
  const TokenShard shard(file("train.bin", raw_tokens<std::uint16_t>({1, 9, 3, 9, 5})));

  EXPECT_EQ(shard.find_not_below(9, 0, 5), 1u);
  EXPECT_EQ(shard.find_not_below(9, 2, 3), 3u);
  EXPECT_EQ(shard.find_not_below(10, 1, 4), 5u);
}

TEST_F(TokenShardTest, requireWhole_fileCutShortSinceIsAnError) {
  const auto path = file("train_0.bin", llm_c_bytes(counting(0, 20000)));
  const TokenShard shard(path);
  std::int64_t token = 0;
  shard.require_whole();
  shard.copy(19999, {&token, 1});

  std::filesystem::resize_file(path, 5000);

  EXPECT_EQ(token, 19999);
  try {
    shard.require_whole();
    FAIL() << "a file that ends at byte 5000 is whole";
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("train_0.bin, byte 5000"));
  }
}

TEST_F(TokenShardTest, copy_removedFileIsStillThere) {
  const auto path = file("train_0.bin", llm_c_bytes(counting(5, 100)));
  const TokenShard shard(path);
  std::filesystem::remove(path);

  EXPECT_NO_THROW(shard.require_whole());
  EXPECT_EQ(tokens_of(shard).front(), 5);
}

TEST_F(TokenShardTest, writer_roundTrip) {
  const std::vector<std::uint32_t> narrow{0, 65535, 42};
  const std::vector<std::uint32_t> wide{0, 65536, 4294967295u};

  write_llm_c_shard(folder_.path() / "a.bin", narrow, TokenWidth::k16);
  write_llm_c_shard(folder_.path() / "b.bin", wide, TokenWidth::k32);

  EXPECT_THAT(tokens_of(TokenShard(folder_.path() / "a.bin")),
              ::testing::ElementsAre(0, 65535, 42));
  EXPECT_THAT(tokens_of(TokenShard(folder_.path() / "b.bin")),
              ::testing::ElementsAre(0, 65536, 4294967295));
}

TEST_F(TokenShardTest, writer_idThatDoesNotFit) {
  ShardWriter writer(folder_.path() / "a.bin", TokenWidth::k16);

  EXPECT_THROW(writer.append(std::vector<std::uint32_t>{65536}), core::DataError);
}

TEST_F(TokenShardTest, writer_unfinishedLeavesNothing) {
  {
    ShardWriter writer(folder_.path() / "a.bin", TokenWidth::k16);
    writer.append(std::vector<std::uint32_t>(3'000'000, 7));
  }

  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST(TokenWidthTest, widthFor_limits) {
  EXPECT_EQ(width_for(65536), TokenWidth::k16);
  EXPECT_EQ(width_for(65537), TokenWidth::k32);
}

}  // namespace
}  // namespace sidestream::data
