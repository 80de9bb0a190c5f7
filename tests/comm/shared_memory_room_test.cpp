#include "comm/shared_memory_room.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(SharedMemoryRoomTest, text_reads_back) {
  const SharedMemoryRoom room = SharedMemoryRoom::from(SharedMemoryRoom{24 * kMiB, 7}.text());

  EXPECT_EQ(room.wanted, 24 * kMiB);
  EXPECT_EQ(room.free, 7u);
  EXPECT_FALSE(room.suffices());
}

TEST(SharedMemoryRoomTest, the_first_rank_with_too_little_is_found) {
  const SharedMemoryRoom much{24 * kMiB, 24 * kMiB}, little{24 * kMiB, 24 * kMiB - 1};

  EXPECT_EQ(first_without_room({much, much}), std::nullopt);
  EXPECT_EQ(first_without_room({much, little, little}), 1u);
}

TEST(SharedMemoryRoomTest, the_warning_is_of_its_host) {
  EXPECT_THAT(
      space_warning({24 * kMiB, 8 * kMiB}, "node7"),
      AllOf(HasSubstr("node7: 24 MiB wanted, /dev/shm has 8 MiB"), HasSubstr("--shm-size")));
}

}  // namespace
}  // namespace sidestream::comm
