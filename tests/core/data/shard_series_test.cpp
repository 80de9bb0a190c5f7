#include "core/data/shard_series.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::data {
namespace {

// What `prepare` asks there, so that a text of many shards can be stopped in its middle.
TEST(ShardSeriesTest, append_asksBeforeEachShard) {
  const core::ScratchFolder folder;
  int asked = 0;
  ShardSeries series({.folder = folder.path(), .shard_tokens = 5, .before_shard = [&] {
                        if (++asked == 3) throw core::Error("stopped");
                      }});
  const std::vector<std::uint32_t> tokens(100, 1);

  EXPECT_THROW(series.append(tokens), core::Error);
  EXPECT_EQ(series.tokens(), 10u);
  EXPECT_THAT(folder.names(),
              ::testing::UnorderedElementsAre("train_000000.bin", "train_000001.bin"));
}

}  // namespace
}  // namespace sidestream::data
