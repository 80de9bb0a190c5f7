#include "core/data/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.hpp"
#include "core/data/bpe_merger.hpp"
#include "core/data/bpe_tokenizer.hpp"
#include "core/data/byte_tokenizer.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"
#include "tests/core/data/tokenizer_fixture.hpp"

namespace sidestream::data {
namespace {

using ::testing::ElementsAre;
using testing::small_tokenizer;

TEST(ByteTokenizerTest, encode_everyByteAndBack) {
  const ByteTokenizer tokenizer;
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);

  const auto ids = tokenizer.encode(text);

  ASSERT_EQ(ids.size(), 256u);
  for (std::uint32_t byte = 0; byte < 256; ++byte) EXPECT_EQ(ids[byte], byte);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.vocab_size(), 257u);
}

TEST(ByteTokenizerTest, encode_endOfText) {
  const ByteTokenizer tokenizer;

  EXPECT_THAT(tokenizer.encode("a<|endoftext|>b"), ElementsAre('a', 256, 'b'));
  EXPECT_EQ(tokenizer.encode("a<|endoftext|>b", SpecialTokens::kAsText).size(), 15u);
  EXPECT_EQ(tokenizer.decode(std::vector<std::uint32_t>{'a', 256}), "a<|endoftext|>");
  EXPECT_THROW(tokenizer.decode(std::vector<std::uint32_t>{257}), core::DataError);
}

TEST(BpeTokenizerTest, encode_mergesByRank) {
  const BpeTokenizer tokenizer(parse_tokenizer_json(small_tokenizer().dump(), "t.json"));

  // Words: "the", " the", "re": `e r` never meets the e of `the`, which is merged first.
  EXPECT_THAT(tokenizer.encode("the there"), ElementsAre(257, 258, 'r', 'e'));
  EXPECT_THAT(tokenizer.encode("er"), ElementsAre(259));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_EQ(tokenizer.vocab_size(), 261u);
  EXPECT_EQ(tokenizer.end_of_text(), 260u);
}

TEST(BpeTokenizerTest, encode_specialTokens) {
  const BpeTokenizer tokenizer(parse_tokenizer_json(small_tokenizer().dump(), "t.json"));

  EXPECT_THAT(tokenizer.encode("the<|endoftext|>the"), ElementsAre(257, 260, 257));
  EXPECT_EQ(tokenizer.encode("<|endoftext|>", SpecialTokens::kAsText).size(), 13u);
}

TEST(BpeTokenizerTest, encode_notUtf8) {
  const BpeTokenizer tokenizer(parse_tokenizer_json(small_tokenizer().dump(), "t.json"));

  try {
    tokenizer.encode("good \xC3( bad");
    FAIL();
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("byte 5"));
  }
}

TEST(BpeTokenizerTest, decode_roundTripAndLimits) {
  const BpeTokenizer tokenizer(parse_tokenizer_json(small_tokenizer().dump(), "t.json"));
  const std::string text = "the others\n\n\tna\u00efve \u4e2d\u6587 \U0001F44D  end ";

  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_THROW(tokenizer.decode(std::vector<std::uint32_t>{261}), core::DataError);
}

TEST(BpeTokenizerTest, endOfText_missing) {
  auto definition = small_tokenizer();
  definition["added_tokens"][0]["content"] = "<|other|>";
  definition["model"]["vocab"].erase("<|endoftext|>");
  const BpeTokenizer tokenizer(parse_tokenizer_json(definition.dump(), "t.json"));

  EXPECT_THROW(tokenizer.end_of_text(), core::DataError);
}

TEST(BpeTokenizerTest, safeCut_noIdChanges) {
  const BpeTokenizer tokenizer(parse_tokenizer_json(small_tokenizer().dump(), "t.json"));
  std::mt19937 random(3);
  const std::vector<std::string> parts{"the",    "x",      "\n",     "\n\n",   " ",
                                       "  ",     "\t",     "'s",     "9",      ".",
                                       "\u00a0", "\u4e2d", "\u3000", "\u3002", "\u2003",
                                       "\u0085", "\u00e9", "\u1680", "\u017f", "\U0001f600"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += parts[random() % parts.size()];
    const std::size_t cut = tokenizer.safe_cut(text, random() % text.size());

    auto joined = tokenizer.encode(text.substr(0, cut));
    const auto rest = tokenizer.encode(text.substr(cut));
    joined.insert(joined.end(), rest.begin(), rest.end());

    EXPECT_EQ(joined, tokenizer.encode(text)) << text;
  }
}

// Texts of other scripts are cut too: a file that is not would be encoded by one thread, in as much
// memory as it has bytes, twice.
TEST(BpeTokenizerTest, safeCut_findsAPlaceInAnyScript) {
  const BpeTokenizer tokenizer(parse_tokenizer_json(small_tokenizer().dump(), "t.json"));
  const std::string chinese = "\u4e2d\u6587\n\u4e2d\u6587", russian = "\u0434\u0430 \u0434\u0430";

  EXPECT_EQ(tokenizer.safe_cut(chinese, 0), 7u);
  EXPECT_EQ(tokenizer.safe_cut(russian, 0), 4u);
  EXPECT_EQ(tokenizer.safe_cut("one line\nand another", 9), 9u);
  EXPECT_EQ(tokenizer.safe_cut("one line\nand another", 10), 12u);
  EXPECT_EQ(tokenizer.safe_cut("thethethe", 2), 9u);
}

TEST(BpeTokenizerTest, openTokenizer_pathFolderOrBytes) {
  const core::ScratchFolder folder;
  testing::write_bytes(folder / "tokenizer.json", small_tokenizer().dump());

  EXPECT_EQ(open_tokenizer("bytes")->kind(), "bytes");
  EXPECT_EQ(open_tokenizer((folder / "tokenizer.json").string())->kind(), "bpe");
  EXPECT_EQ(open_tokenizer(folder.path().string())->vocab_size(), 261u);
  EXPECT_THROW(open_tokenizer((folder / "missing.json").string()), core::DataError);
}

// The two ways to merge must agree: a plain loop over all pairs is the oracle for both.
std::vector<std::uint32_t> merged_plainly(const MergeTable& table,
                                          std::vector<std::uint32_t> symbols) {
  while (true) {
    MergeTable::Entry best;
    std::size_t where = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = table.find(symbols[i], symbols[i + 1]);
      if (found.rank < best.rank) best = found, where = i;
    }
    if (best.rank == MergeTable::kNoRank) return symbols;
    symbols[where] = best.result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST(BpeMergerTest, merge_shortAndLongWords) {
  std::mt19937 random(5);
  std::vector<BpeMerge> merges;
  for (std::uint32_t result = 4; result < 60; ++result) {
    const BpeMerge merge{static_cast<std::uint32_t>(random() % result),
                         static_cast<std::uint32_t>(random() % result), result};
    const auto same = [&](const BpeMerge& other) {
      return other.left == merge.left && other.right == merge.right;
    };
    if (std::none_of(merges.begin(), merges.end(), same)) merges.push_back(merge);
  }
  const MergeTable table(merges);
  BpeMerger merger(table);
  for (std::size_t length = 0; length < 120; ++length) {
    std::vector<std::uint32_t> symbols(length);
    for (auto& symbol : symbols) symbol = static_cast<std::uint32_t>(random() % 4);
    const auto expected = merged_plainly(table, symbols);

    merger.merge(symbols);

    EXPECT_EQ(symbols, expected) << length;
  }
}

}  // namespace
}  // namespace sidestream::data
