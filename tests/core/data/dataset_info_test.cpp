#include "core/data/dataset_info.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::data {
namespace {

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

}  // namespace
}  // namespace sidestream::data
