// What a message of a deadline says where more ranks are missing than people would read of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/device_progress.hpp"
#include "comm/peer_watch.hpp"

namespace sidestream::comm {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// Ranks of which this one hears nothing.
Topology topology_of_silent(int size) {
  return {.size = size, .hosts = std::vector<std::string>(static_cast<std::size_t>(size), "node1")};
}

std::string missing_on_host(int size) {
  const Topology topology = topology_of_silent(size);
  return PeerWatch(topology, {}, {}).describe_missing(1);
}

std::string missing_on_device(int size) {
  const Topology topology = topology_of_silent(size);
  return DeviceProgress(topology, nullptr, nullptr, {}).describe_missing(1);
}

TEST(MissingRanksTest, a_few_are_named_one_by_one) {
  const std::string both =
      "rank 1 on node1 (gives no sign of life), rank 2 on node1 (gives no sign of life)";

  EXPECT_EQ(missing_on_host(3), both);
  EXPECT_EQ(missing_on_device(3), both);
  EXPECT_THAT(missing_on_device(9), EndsWith("rank 8 on node1 (gives no sign of life)"));
}

TEST(MissingRanksTest, of_many_the_first_are_named_and_the_others_counted) {
  for (const std::string& text : {missing_on_host(512), missing_on_device(512)}) {
    EXPECT_THAT(text, StartsWith("rank 1 on node1 (gives no sign of life), rank 2"));
    EXPECT_THAT(text, EndsWith("rank 8 on node1 (gives no sign of life) and 503 more"));
  }
}

TEST(MissingRanksTest, where_none_is_missing_the_text_says_what_else_it_may_be) {
  EXPECT_THAT(missing_on_host(1), StartsWith("nobody: every rank has started it"));
  EXPECT_THAT(missing_on_device(1), StartsWith("nobody: every rank has started it"));
}

}  // namespace
}  // namespace sidestream::comm
