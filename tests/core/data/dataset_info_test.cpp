#include "core/data/dataset_info.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::data {
namespace {

using nlohmann::literals::operator""_json_pointer;

TEST(DatasetInfoTest, requireShards_outsideTheFolder) {
  const core::ScratchFolder folder;
  for (const std::string name : {"../other/train_000000.bin", "./train_000000.bin",
                                 "/data/train_000000.bin", "..", ".", ""}) {
    SplitInfo split;
    split.shards.push_back({.file = name, .tokens = 5});

    EXPECT_THAT([&] { require_shards(folder.path(), split); },
                testing::ThrowsMessage<core::DataError>(testing::HasSubstr(
                    "expected a file of the folder as shard, found \"" + name + "\"")));
  }
}

TEST(DatasetInfoTest, read_missingOrDamaged) {
  const core::ScratchFolder folder;
  EXPECT_FALSE(read_dataset_info(folder.path()));
  for (const char* text :
       {"{", "[]", "{\"schema\": 1}", "{\"schema\": 2}", "{\"schema\": \"x\"}"}) {
    std::ofstream(folder / "dataset.json") << text;
    EXPECT_THROW(read_dataset_info(folder.path()), core::DataError) << text;
  }
}

TEST(DatasetInfoTest, read_deepOrVast) {
  const core::ScratchFolder folder;
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  const auto read = [&] { read_dataset_info(folder.path()); };
  std::ofstream(folder / "dataset.json") << "{\"train\": " << deep << "}";
  EXPECT_THAT(read,
              testing::ThrowsMessage<core::DataError>(testing::HasSubstr("32 nested levels")));
  std::ofstream(folder / "dataset.json") << std::string((std::size_t{64} << 20) + 1, ' ');
  EXPECT_THAT(read, testing::ThrowsMessage<core::DataError>(testing::HasSubstr("67108864")));
}

TEST(DatasetInfoTest, read_tokenizerOutsideTheFolder) {
  const core::ScratchFolder folder;
  write_dataset_info(folder.path(), {.tokenizer = "bytes", .vocab_size = 257, .end_of_text = 256});
  const auto file = folder / DatasetInfo::kFileName;
  auto root = nlohmann::json::parse(std::ifstream(file));
  for (const char* name : {"../../etc/passwd", "..", ".", ""}) {
    root["tokenizer"] = name;
    std::ofstream(file) << root;

    EXPECT_THAT([&] { read_dataset_info(folder.path()); },
                testing::ThrowsMessage<core::DataError>(testing::HasSubstr("as tokenizer")))
        << name;
  }
}

TEST(DatasetInfoTest, numbersThatDoNotFit_areNamed) {
  const core::ScratchFolder folder;
  write_dataset_info(folder.path(), {.tokenizer = "bytes", .vocab_size = 257, .end_of_text = 256});
  const auto file = folder / DatasetInfo::kFileName;
  const auto whole = nlohmann::json::parse(std::ifstream(file));
  const auto expect_named = [&](const nlohmann::json::json_pointer& place,
                                const nlohmann::json& value, const std::string& words) {
    auto damaged = whole;
    damaged[place] = value;
    std::ofstream(file) << damaged;
    EXPECT_THAT([&] { read_dataset_info(folder.path()); },
                testing::ThrowsMessage<core::DataError>(testing::HasSubstr(words)));
  };

  expect_named("/vocab_size"_json_pointer, -1, "as vocab_size, found -1");
  expect_named("/end_of_text"_json_pointer, 4294967296, "from 0 to 4294967295 as end_of_text");
  expect_named("/schema"_json_pointer, 4294967297, "as schema, found 4294967297");
  expect_named("/train/tokens"_json_pointer, 1e300, "as tokens, found 1e+300");
}

}  // namespace
}  // namespace sidestream::data
