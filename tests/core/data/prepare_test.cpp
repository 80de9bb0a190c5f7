#include "core/data/prepare.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/host_name.hpp"
#include "core/data/token_stream.hpp"
#include "core/data/tokenizer.hpp"
#include "tests/core/data/corpus_fixture.hpp"
#include "tests/core/data/tokenizer_fixture.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string decoded(const fs::path& folder, Split split, const Tokenizer& tokenizer) {
  const auto stream = TokenStream::open(folder, split);
  std::vector<std::int64_t> wide(stream.size());
  stream.read(0, wide);
  return tokenizer.decode(std::vector<std::uint32_t>(wide.begin(), wide.end()));
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = core::read_file(entry.path());
  }
  return files;
}

// Built with += : GCC 12 warns about "literal" + std::string.
std::string label(int i) {
  std::string text = "[";
  text += std::to_string(i);
  return text += "]";
}

std::string file_name(int i) {
  std::string name = "f";
  name += std::to_string(i);
  return name += ".txt";
}

class PrepareTest : public testing::CorpusFixture {
 protected:
  PrepareConfig config(const std::string& output = "out") {
    return {.inputs = {(folder_ / "in").string()}, .include = {}, .output = folder_ / output};
  }

  std::string tokenizer_path() {
    testing::write_bytes(folder_ / "t.json", testing::small_tokenizer().dump());
    return (folder_ / "t.json").string();
  }
};

TEST_F(PrepareTest, prepare_bytesRoundTrip) {
  file("b.txt", "second");
  file("a.txt", "first");
  file("sub/c.txt",
       "th\xFE"
       "ird\xFF");
  file("sub/program", std::string("no\0text", 7));
  file(".git/hidden", "no text that anybody means");
  auto options = config();
  options.val_fraction = 0;

  const DatasetInfo info = prepare(options);

  EXPECT_EQ(decoded(options.output, Split::kTrain, *open_tokenizer("bytes")),
            "first<|endoftext|>second<|endoftext|>th\xFE"
            "ird\xFF<|endoftext|>");
  EXPECT_EQ(info.train.files, 3u);
  EXPECT_EQ(info.train.bytes, 18u);
  EXPECT_EQ(info.train.tokens, 21u);
  EXPECT_EQ(info.validation.tokens, 0u);
  ASSERT_EQ(info.skipped.size(), 1u);
  EXPECT_EQ(info.skipped[0].name, "in/sub/program");
  EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAre("in", "out"));
}

TEST_F(PrepareTest, prepare_splitByFile) {
  for (int i = 0; i < 200; ++i) file(file_name(i), label(i));
  auto options = config();

  const DatasetInfo info = prepare(options);

  EXPECT_EQ(info.train.files + info.validation.files, 200u);
  EXPECT_GT(info.validation.files, 5u);
  EXPECT_LT(info.validation.files, 45u);
  const std::string train = decoded(options.output, Split::kTrain, *open_tokenizer("bytes"));
  const std::string validation =
      decoded(options.output, Split::kValidation, *open_tokenizer("bytes"));
  for (int i = 0; i < 200; ++i) {
    const std::string text = label(i);
    EXPECT_NE(train.find(text) == std::string::npos, validation.find(text) == std::string::npos)
        << i;
  }
}

TEST_F(PrepareTest, prepare_splitStaysWhenFilesAreAdded) {
  for (int i = 0; i < 100; ++i) file(file_name(i), label(i));
  prepare(config("one"));
  for (int i = 100; i < 150; ++i) file(file_name(i), label(i));
  prepare(config("two"));

  const auto bytes = open_tokenizer("bytes");
  const std::string before = decoded(folder_ / "one", Split::kValidation, *bytes);
  const std::string after = decoded(folder_ / "two", Split::kValidation, *bytes);
  for (int i = 0; i < 100; ++i) {
    const std::string text = label(i);
    EXPECT_EQ(before.find(text) == std::string::npos, after.find(text) == std::string::npos) << i;
  }
}

TEST_F(PrepareTest, prepare_twoFilesGiveBothSplits) {
  file("a.txt", "aaa");
  file("b.txt", "bbb");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto options = config("out" + std::to_string(seed));
    options.seed = seed;
    options.val_fraction = seed < 5 ? 0.01 : 0.99;
    const DatasetInfo info = prepare(options);
    EXPECT_EQ(info.train.files, 1u);
    EXPECT_EQ(info.validation.files, 1u);
  }
}

TEST_F(PrepareTest, prepare_tellsOfAFileThatIsWhereItIsOnlyBecauseASideWasEmpty) {
  file("a.txt", "aaa");
  file("b.txt", "bbb");
  for (const auto& [fraction, words] :
       {std::pair(1e-9, "no file falls into validation"), std::pair(0.5, ""),
        std::pair(1 - 1e-9, "every file falls into validation")}) {
    auto options = config("out" + std::to_string(fraction));
    options.seed = 1;  // one of each by 0.5
    options.val_fraction = fraction;
    std::string notes;
    options.on_note = [&](const std::string& note) { notes += note; };
    prepare(options);
    EXPECT_THAT(notes, HasSubstr(words)) << fraction;
    EXPECT_EQ(notes.empty(), fraction == 0.5) << notes;
  }
}

TEST_F(PrepareTest, prepare_lastLineOfTheOnlyFileIsForValidationHoweverLittleIsWanted) {
  file("input.txt", "one\ntwo\nthree\n");
  auto options = config();
  options.val_fraction = 1e-17;

  prepare(options);

  const auto bytes = open_tokenizer("bytes");
  EXPECT_EQ(decoded(options.output, Split::kTrain, *bytes), "one\ntwo\n<|endoftext|>");
  EXPECT_EQ(decoded(options.output, Split::kValidation, *bytes), "three\n<|endoftext|>");
}

TEST_F(PrepareTest, prepare_onlyFileIsCutAtALine) {
  file("input.txt", "one\ntwo\nthree\nfour\n");
  auto options = config();
  options.val_fraction = 0.4;

  prepare(options);

  const auto bytes = open_tokenizer("bytes");
  EXPECT_EQ(decoded(options.output, Split::kTrain, *bytes), "one\ntwo\nthree\n<|endoftext|>");
  EXPECT_EQ(decoded(options.output, Split::kValidation, *bytes), "four\n<|endoftext|>");
}

TEST_F(PrepareTest, prepare_onlyFileWithoutLines) {
  file("input.txt", "no line ends here");

  EXPECT_THROW(prepare(config()), core::DataError);
  EXPECT_THAT(folder_.names(), ElementsAre("in"));
}

TEST_F(PrepareTest, prepare_sameForAnyThreads) {
  std::string big;
  for (int i = 0; i < 300000; ++i) big += i % 7 == 0 ? "the others\n" : " there\u00e9 ";
  file("big.txt", big);
  for (int i = 0; i < 30; ++i) file(file_name(i), "the " + std::to_string(i) + "\n");
  auto options = config("one");
  options.tokenizer = tokenizer_path();
  options.shard_tokens = 100'000;
  prepare(options);
  options.output = folder_ / "three";
  options.threads = 3;

  prepare(options);

  EXPECT_TRUE(contents(folder_ / "one") == contents(folder_ / "three"));
  EXPECT_GT(contents(folder_ / "one").size(), 10u);
}

TEST_F(PrepareTest, prepare_bpeRoundTripOverSegments) {
  std::string big;
  for (int i = 0; i < 300000; ++i) big += i % 7 == 0 ? "the others\n" : " there\u00e9 ";
  file("big.txt", big);
  auto options = config();
  options.tokenizer = tokenizer_path();
  options.val_fraction = 0;

  const DatasetInfo info = prepare(options);

  const auto tokenizer = open_tokenizer(info.tokenizer);
  EXPECT_TRUE(decoded(options.output, Split::kTrain, *tokenizer) == big + "<|endoftext|>");
  auto expected = tokenizer->encode(big);
  EXPECT_EQ(info.train.tokens, expected.size() + 1);
}

// What the tokens were made with, whatever has its name by the time it is copied.
TEST_F(PrepareTest, prepare_tokenizerInTheFolderIsTheOneThatWasUsed) {
  file("a.txt", "the\nthe\n");
  auto options = config();
  options.tokenizer = tokenizer_path();
  const std::string used = core::read_file(options.tokenizer);
  options.val_fraction = 0;
  options.on_progress = [&](const PrepareProgress&) { fs::remove(options.tokenizer); };

  const DatasetInfo info = prepare(options);

  EXPECT_EQ(core::read_file(info.tokenizer), used);
}

TEST_F(PrepareTest, prepare_specialTokensInTextAreText) {
  file("a.txt", "x<|endoftext|>y");
  auto options = config();
  options.val_fraction = 0;

  EXPECT_EQ(prepare(options).train.tokens, 16u);
}

TEST_F(PrepareTest, prepare_shardsOfExactSize) {
  file("a.txt", std::string(99, 'a'));
  auto options = config();
  options.val_fraction = 0;
  options.shard_tokens = 30;

  const DatasetInfo info = prepare(options);

  ASSERT_EQ(info.train.shards.size(), 4u);
  EXPECT_EQ(info.train.shards[0].file, "train_000000.bin");
  EXPECT_EQ(info.train.shards[3].tokens, 10u);
  EXPECT_EQ(TokenStream::open(options.output, Split::kTrain).size(), 100u);
}

TEST_F(PrepareTest, prepare_skipsWithReasons) {
  file("empty.txt", "");
  file("latin.txt", "caf\xE9");
  file("binary.txt", std::string("a\0b", 3));
  file("good.txt", "the\nthe\nthe\n");
  auto options = config();
  options.tokenizer = tokenizer_path();

  const DatasetInfo info = prepare(options);

  ASSERT_EQ(info.skipped.size(), 3u);
  EXPECT_EQ(info.skipped[0].name, "in/binary.txt");
  EXPECT_THAT(info.skipped[0].reason, HasSubstr("NUL at byte 1"));
  EXPECT_EQ(info.skipped[1].reason, "empty");
  EXPECT_THAT(info.skipped[2].reason, HasSubstr("not UTF-8 at byte 3"));
}

TEST_F(PrepareTest, prepare_datasetInfoReadsBack) {
  file("a.txt", "the\nthe\n");
  file("b.txt", "the\nthe\n");
  file("c.txt", "");
  auto options = config();
  options.tokenizer = tokenizer_path();
  options.seed = 9;

  const DatasetInfo written = prepare(options);
  const auto read = read_dataset_info(options.output);

  ASSERT_TRUE(read);
  EXPECT_EQ(read->tokenizer, (options.output / "tokenizer.json").string());
  EXPECT_EQ(read->tokenizer, written.tokenizer);
  EXPECT_EQ(read->vocab_size, 261u);
  EXPECT_EQ(read->end_of_text, 260u);
  EXPECT_EQ(read->seed, 9u);
  EXPECT_EQ(read->train.tokens, written.train.tokens);
  EXPECT_EQ(read->validation.shards.at(0).file, "val_000000.bin");
  EXPECT_EQ(read->skipped.at(0).reason, "empty");
}

TEST_F(PrepareTest, requireShards_missingOrOther) {
  file("a.txt", "some words\n");
  auto options = config();
  options.val_fraction = 0;
  prepare(options);
  const DatasetInfo info = *read_dataset_info(options.output);
  require_shards(options.output, info.train);

  DatasetInfo other = info;
  other.train.shards.front().tokens += 1;
  EXPECT_THROW(require_shards(options.output, other.train), core::DataError);
  fs::remove(options.output / info.train.shards.front().file);
  EXPECT_THAT([&] { require_shards(options.output, info.train); },
              ::testing::ThrowsMessage<core::DataError>(
                  HasSubstr("remove the folder and make the data again")));
}

TEST_F(PrepareTest, prepare_existingOutput) {
  file("a.txt", "x\ny\n");
  auto options = config();
  fs::create_directories(options.output);
  prepare(options);

  EXPECT_THROW(prepare(options), core::ConfigError);
  EXPECT_TRUE(fs::exists(options.output / "val_000000.bin"));
  EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAre("in", "out"));
}

// Of a process of the same number on another host, say.
TEST_F(PrepareTest, prepare_besideAWriterOfTheSameNameSaysSo) {
  file("a.txt", "x\ny\n");
  const std::string staged = "out.tmp." + core::host_name() + "." + std::to_string(::getpid());
  fs::create_directories(folder_ / staged);
  const core::UniqueFd writer(::open((folder_ / staged).c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);

  EXPECT_THAT([&] { prepare(config()); },
              ::testing::ThrowsMessage<core::ConfigError>(
                  AllOf(HasSubstr(staged), HasSubstr("another process writes it"))));
  EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAre("in", staged));
}

TEST_F(PrepareTest, prepare_failureLeavesNothing) {
  for (int i = 0; i < 10; ++i) file(file_name(i), std::string(1000, 'x'));
  auto options = config();
  options.on_progress = [](const PrepareProgress&) { throw core::Error("stopped"); };

  EXPECT_THROW(prepare(options), core::Error);
  EXPECT_THAT(folder_.names(), ElementsAre("in"));
}

TEST_F(PrepareTest, prepare_progressEndsAtTheTotal) {
  for (int i = 0; i < 10; ++i) file(file_name(i), std::string(1000, 'x'));
  PrepareProgress last;
  auto options = config();
  options.on_progress = [&](const PrepareProgress& progress) { last = progress; };

  const DatasetInfo info = prepare(options);

  EXPECT_EQ(last.bytes_done, 10000u);
  EXPECT_EQ(last.bytes_total, 10000u);
  EXPECT_EQ(last.tokens, info.train.tokens + info.validation.tokens);
}

TEST_F(PrepareTest, prepare_badConfiguration) {
  file("a.txt", "x");
  const auto refused = [&](auto&& change) {
    auto options = config();
    change(options);
    EXPECT_THROW(prepare(options), core::ConfigError);
  };
  refused([](PrepareConfig& c) { c.inputs.clear(); });
  refused([](PrepareConfig& c) { c.output.clear(); });
  refused([](PrepareConfig& c) { c.val_fraction = 1; });
  refused([](PrepareConfig& c) { c.val_fraction = -0.1; });
  refused([](PrepareConfig& c) { c.shard_tokens = 0; });
  refused([](PrepareConfig& c) { c.threads = 0; });
  refused([](PrepareConfig& c) { c.output = "/proc/nowhere/out"; });
}

TEST_F(PrepareTest, prepare_nothingToRead) {
  auto options = config();
  EXPECT_THROW(prepare(options), core::DataError);
  file("a.txt", "");
  EXPECT_THROW(prepare(options), core::DataError);
  options.include = {"*.hpp"};
  EXPECT_THROW(prepare(options), core::DataError);
}

}  // namespace
}  // namespace sidestream::data
