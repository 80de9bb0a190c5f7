#include "core/data/token_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "core/base/error.hpp"
#include "core/data/token_check.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data {
namespace {

using core::ScratchFolder;
using ::testing::AllOf;
using testing::counting;
using ::testing::HasSubstr;
using testing::llm_c_bytes;
using testing::write_bytes;

template <typename Action>
std::string data_error_of(const Action& action) {
  try {
    action();
  } catch (const core::DataError& error) {
    return error.what();
  }
  return "";
}

class TokenStreamTest : public ::testing::Test {
 protected:
  void shard(const std::string& name, const std::vector<std::uint16_t>& tokens) {
    write_bytes(folder_.path() / name, llm_c_bytes(tokens));
  }

  ScratchFolder folder_;
};

TEST_F(TokenStreamTest, open_nameOrderAndSplit) {
  shard("x_train_000001.bin", counting(10, 5));
  shard("x_train_000000.bin", counting(0, 10));
  shard("x_val_000000.bin", counting(100, 3));
  write_bytes(folder_.path() / "notes_train.txt", "not a shard");
  write_bytes(folder_.path() / "x_train_000002.bin.tmp.17", "half a shard");
  write_bytes(folder_.path() / ".x_train.bin", "hidden");

  const auto train = TokenStream::open(folder_.path(), Split::kTrain);
  const auto validation = TokenStream::open(folder_.path(), Split::kValidation);

  EXPECT_EQ(train.size(), 15u);
  EXPECT_EQ(validation.size(), 3u);
  std::vector<std::int64_t> tokens(15);
  train.read(0, tokens);
  for (std::int64_t i = 0; i < 15; ++i) EXPECT_EQ(tokens[static_cast<std::size_t>(i)], i);
}

TEST_F(TokenStreamTest, read_everyRange) {
  shard("train_0.bin", counting(0, 4));
  shard("train_1.bin", counting(4, 1));
  shard("train_2.bin", counting(5, 7));
  const auto stream = TokenStream::open(folder_.path(), Split::kTrain);

  for (std::uint64_t first = 0; first <= 12; ++first) {
    for (std::uint64_t count = 0; first + count <= 12; ++count) {
      std::vector<std::int64_t> tokens(count);
      stream.read(first, tokens);
      for (std::uint64_t i = 0; i < count; ++i)
        EXPECT_EQ(tokens[i], static_cast<std::int64_t>(first + i));
    }
  }
}

TEST_F(TokenStreamTest, read_pastTheEnd) {
  shard("train_0.bin", counting(0, 4));
  const auto stream = TokenStream::open(folder_.path(), Split::kTrain);
  std::vector<std::int64_t> tokens(2);

  EXPECT_THROW(stream.read(3, tokens), core::Error);
  EXPECT_THROW(stream.read(~std::uint64_t{0}, tokens), core::Error);
}

TEST_F(TokenStreamTest, read_looksOnceInABatchWhetherAShardIsWhole) {
  shard("train_0.bin", counting(0, 20000));
  shard("train_1.bin", counting(20000, 20000));
  const auto stream = TokenStream::open(folder_.path(), Split::kTrain);
  std::vector<std::int64_t> tokens(100);
  WholeShards batch;
  stream.read(19950, tokens, batch);
  EXPECT_EQ(batch.size(), 2u);

  std::filesystem::resize_file(folder_.path() / "train_0.bin", 1024 + 2 * 10000);

  EXPECT_NO_THROW(stream.read(0, tokens, batch));  // before the cut: without another look
  EXPECT_EQ(batch.size(), 2u);
  WholeShards next;
  EXPECT_THAT(data_error_of([&] { stream.read(0, tokens, next); }),
              HasSubstr("train_0.bin, byte 21024"));
  EXPECT_NO_THROW(stream.read(20000, tokens, next)) << "the other one is whole";
}

TEST_F(TokenStreamTest, open_badFolders) {
  const auto open = [&](const std::filesystem::path& folder) {
    return data_error_of([&] { TokenStream::open(folder, Split::kTrain); });
  };

  EXPECT_THAT(open(folder_.path() / "missing"), HasSubstr("missing"));
  EXPECT_THAT(open(folder_.path()), HasSubstr("no shard of this split"));
  shard("val_0.bin", counting(0, 4));
  EXPECT_THAT(open(folder_.path()), HasSubstr("`train`"));
  shard("retrieval_train.bin", counting(0, 4));
  EXPECT_THAT(open(folder_.path()), HasSubstr("rename"));
}

TEST_F(TokenStreamTest, open_shardThatLeadsNowhere) {
  shard("train_0.bin", counting(0, 4));
  const auto open = [&] {
    return data_error_of([&] { TokenStream::open(folder_.path(), Split::kTrain); });
  };

  for (const char* target : {"nowhere", "train_1.bin"}) {
    std::filesystem::create_symlink(target, folder_.path() / "train_1.bin");
    EXPECT_THAT(open(), AllOf(HasSubstr("train_1.bin"), HasSubstr("regular file"))) << target;
    std::filesystem::remove(folder_.path() / "train_1.bin");
  }
}

TEST_F(TokenStreamTest, open_mixedWidths) {
  shard("train_0.bin", counting(0, 4));
  write_bytes(folder_.path() / "train_1.bin", llm_c_bytes<std::uint32_t>({1, 2, 3}));

  EXPECT_THAT(data_error_of([&] { TokenStream::open(folder_.path(), Split::kTrain); }),
              AllOf(HasSubstr("train_1.bin"), HasSubstr("4-byte ids")));
}

// kB of the files below a folder that count as memory of this process.
std::uint64_t resident_kb_of(const std::filesystem::path& folder) {
  std::ifstream lines("/proc/self/smaps");
  bool ours = false;
  std::uint64_t total = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      ours = line.find(folder.string()) != std::string::npos;
    std::uint64_t kb = 0;
    if (ours && std::sscanf(line.c_str(), "Rss: %" SCNu64 " kB", &kb) == 1) total += kb;
  }
  return total;
}

TEST_F(TokenStreamTest, read_leavesLittleOfTheDataInMemory) {
  constexpr std::size_t kTokens = std::size_t{12} << 20;  // 24 MiB each
  const std::vector<std::uint16_t> tokens(kTokens, 7);
  for (const char* name : {"train_0.bin", "train_1.bin", "train_2.bin", "train_3.bin"})
    shard(name, tokens);
  const auto stream = TokenStream::open(folder_.path(), Split::kTrain);

  check_token_ids(stream, {.vocab_size = 8, .threads = 2});
  EXPECT_LT(resident_kb_of(folder_.path()), 2u << 10);
  std::vector<std::int64_t> read(kTokens / 8);
  std::uint64_t most_kb = 0;
  for (std::uint64_t first = 0; first < stream.size(); first += read.size()) {
    stream.read(first, read);
    ASSERT_EQ(std::count(read.begin(), read.end(), 7), std::ssize(read));
    most_kb = std::max(most_kb, resident_kb_of(folder_.path()));
  }

  EXPECT_GT(most_kb, 1u << 10) << "not measured";
  EXPECT_LT(most_kb, 12u << 10) << "of 96 MiB";
}

}  // namespace
}  // namespace sidestream::data
