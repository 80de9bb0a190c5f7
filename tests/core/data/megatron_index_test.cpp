#include "core/data/megatron_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/token_check.hpp"
#include "core/data/token_stream.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data {
namespace {

using ::testing::HasSubstr;
using testing::raw_tokens;
using testing::write_bytes;

template <typename Number>
std::string bytes_of(Number value) {
  return raw_tokens(std::vector<Number>{value});
}

// An index built byte by byte; a test spoils one field of it.
struct IndexText {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::uint64_t sequences = 3;
  std::uint64_t documents = 3;
  std::vector<std::int32_t> lengths = {4, 0, 3};
  std::vector<std::int64_t> pointers = {0, 8, 8};
  std::vector<std::int64_t> starts = {0, 1, 3};
  std::string more = "";

  std::string text() const {
    return magic + bytes_of(version) + bytes_of(type) + bytes_of(sequences) + bytes_of(documents) +
           raw_tokens(lengths) + raw_tokens(pointers) + raw_tokens(starts) + more;
  }
};

struct MegatronIndexTest : ::testing::Test {
  core::ScratchFolder scratch;

  std::string message_of(const std::string& text, std::uint64_t shard_bytes = 14) {
    write_bytes(scratch / "train.idx", text);
    try {
      read_megatron_index(scratch / "train.idx", shard_bytes);
      return "no error";
    } catch (const core::DataError& error) {
      return error.what();
    }
  }
  std::string spoiled(const std::function<void(IndexText&)>& change) {
    IndexText index;
    change(index);
    return message_of(index.text());
  }
};

TEST_F(MegatronIndexTest, read_counts) {
  write_bytes(scratch / "train.idx", IndexText().text());

  const MegatronIndex index = read_megatron_index(scratch / "train.idx", 14);

  EXPECT_EQ(index.token_bytes, 2U);
  EXPECT_EQ(index.tokens, 7U);
  EXPECT_EQ(index.sequences, 3U);
  EXPECT_EQ(index.documents, 3U);
}

TEST_F(MegatronIndexTest, read_withModes) {
  EXPECT_EQ(spoiled([](auto& index) { index.more = std::string(3, '\0'); }), "no error");
}

TEST_F(MegatronIndexTest, stream_readsUint16AndInt32) {
  write_bytes(scratch / "a_train_text_document.idx", IndexText().text());
  write_bytes(scratch / "a_train_text_document.bin", raw_tokens(testing::counting(10, 7)));
  IndexText wide;
  wide.type = 4;
  wide.pointers = {0, 16, 16};
  write_bytes(scratch / "val.idx", wide.text());
  write_bytes(scratch / "val.bin", raw_tokens(std::vector<std::int32_t>{1, 2, 3, 70000, 5, 6, 7}));

  const auto train = TokenStream::open(scratch.path(), Split::kTrain);
  const auto validation = TokenStream::open(scratch.path(), Split::kValidation);

  std::vector<std::int64_t> tokens(7);
  train.read(0, tokens);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(train.shards()[0].format(), ShardFormat::kMegatron);
  validation.read(0, tokens);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{1, 2, 3, 70000, 5, 6, 7}));
}

TEST_F(MegatronIndexTest, stream_negativeIdIsNamed) {
  IndexText wide;
  wide.type = 4;
  wide.pointers = {0, 16, 16};
  write_bytes(scratch / "train.idx", wide.text());
  write_bytes(scratch / "train.bin", raw_tokens(std::vector<std::int32_t>{1, 2, 3, -1, 5, 6, 7}));
  const auto stream = TokenStream::open(scratch.path(), Split::kTrain);

  try {
    check_token_ids(stream, {.vocab_size = 100});
    FAIL() << "no error";
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("train.bin, byte 12: expected token ids below"));
  }
}

TEST_F(MegatronIndexTest, read_refusesDamage) {
  EXPECT_THAT(message_of(""), HasSubstr("byte 0: expected an index of Megatron-LM"));
  EXPECT_THAT(message_of(IndexText().text().substr(0, 33)),
              HasSubstr("byte 33: expected an index"));
  EXPECT_THAT(spoiled([](auto& i) { i.magic[0] = 'X'; }), HasSubstr("byte 0: expected the magic"));
  EXPECT_THAT(spoiled([](auto& i) { i.version = 2; }),
              HasSubstr("byte 9: expected version 1, found 2"));
  EXPECT_THAT(spoiled([](auto& i) { i.type = 6; }), HasSubstr("byte 17: expected type 8"));
  EXPECT_THAT(spoiled([](auto& i) { i.sequences = ~0ULL; }), HasSubstr("byte 18: expected tables"));
  EXPECT_THAT(spoiled([](auto& i) { i.sequences = 1ULL << 62; }), HasSubstr("byte 18: expected"));
  EXPECT_THAT(spoiled([](auto& i) { i.documents = 1ULL << 61; }), HasSubstr("byte 26: expected"));
  EXPECT_THAT(spoiled([](auto& i) { i.more = "xx"; }), HasSubstr("expected the end of the file"));
  EXPECT_THAT(spoiled([](auto& i) { i.lengths[1] = -1; }), HasSubstr("byte 38: expected a length"));
  EXPECT_THAT(spoiled([](auto& i) { i.lengths[2] = 4; }), HasSubstr("its end at byte 16"));
  EXPECT_THAT(spoiled([](auto& i) { i.lengths[2] = 2; }),
              HasSubstr("sequences that fill the shard"));
  EXPECT_THAT(spoiled([](auto& i) { i.pointers[2] = 6; }),
              HasSubstr("byte 62: expected sequence 2 at byte 8"));
  EXPECT_THAT(spoiled([](auto& i) { i.pointers[1] = -8; }), HasSubstr("found byte -8"));
  EXPECT_THAT(spoiled([](auto& i) { i.starts = {0, 3, 1}; }), HasSubstr("document 2 to begin"));
  EXPECT_THAT(spoiled([](auto& i) { i.starts[2] = 4; }), HasSubstr("found 4"));
  EXPECT_THAT(spoiled([](auto& i) { i.starts[0] = 1; }), HasSubstr("document 0 to begin"));
}

TEST_F(MegatronIndexTest, read_everyCutIsRefused) {
  const std::string whole = IndexText().text();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THAT(message_of(whole.substr(0, length)), HasSubstr("train.idx, byte ")) << length;
}

}  // namespace
}  // namespace sidestream::data
