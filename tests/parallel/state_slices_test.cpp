#include "parallel/state_slices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::parallel {
namespace {

using optim::DevicePiece;
using ::testing::ElementsAre;

DevicePiece piece(std::uint64_t weight, std::uint32_t count, std::uint64_t gradient = 0) {
  return {.weight = weight,
          .low = 0,
          .gradient = gradient,
          .count = count,
          .block = 0,
          .decays = 0,
          .parameter = 0,
          .first = 0};
}

std::vector<std::pair<std::size_t, std::size_t>> ranges_of(const SlicePlan& plan) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const StateSlice& slice : plan.slices) ranges.emplace_back(slice.begin, slice.end);
  return ranges;
}

TEST(StateSlicesTest, cut_followsTheStateAndNotTheOrderOfThePieces) {
  const SlicePlan plan = cut_into_slices({{piece(48, 19, 7), piece(0, 16), piece(16, 32)}}, 48);

  EXPECT_THAT(ranges_of(plan), ElementsAre(std::pair(0u, 48u), std::pair(48u, 67u)));
  ASSERT_EQ(plan.pieces.size(), 3u);
  EXPECT_EQ(plan.slices[0].pieces, 2u);
  EXPECT_EQ(plan.slices[1].first_piece, 2u);
  EXPECT_EQ(plan.pieces[1].weight, 16u);
  EXPECT_EQ(plan.pieces[2].weight, 0u) << "it counts from its slice";
  EXPECT_EQ(plan.pieces[2].gradient, 7u);
  EXPECT_EQ(plan.most_elements(), 48u);
}

TEST(StateSlicesTest, cut_leavesOutThePaddingBetweenSlices) {
  const SlicePlan plan = cut_into_slices({{piece(0, 3), piece(16, 5), piece(32, 16)}}, 21);

  EXPECT_THAT(ranges_of(plan), ElementsAre(std::pair(0u, 21u), std::pair(32u, 48u)));
}

TEST(StateSlicesTest, pieceThatIsLarger_hasASliceOfItsOwn) {
  const SlicePlan plan = cut_into_slices({{piece(0, 8), piece(16, 100), piece(128, 8)}}, 16);

  EXPECT_THAT(ranges_of(plan),
              ElementsAre(std::pair(0u, 8u), std::pair(16u, 116u), std::pair(128u, 136u)));
  EXPECT_EQ(plan.most_elements(), 100u);
}

TEST(StateSlicesTest, groups_areNeverInOneSlice) {
  const SlicePlan plan =
      cut_into_slices({{piece(0, 16)}, {}, {piece(16, 16), piece(32, 16)}}, 1000);

  EXPECT_THAT(ranges_of(plan), ElementsAre(std::pair(0u, 16u), std::pair(16u, 48u)));
  EXPECT_EQ(plan.slices[0].group, 0u);
  EXPECT_EQ(plan.slices[1].group, 2u);
}

TEST(StateSlicesTest, nothing_hasNoSlices) {
  const SlicePlan plan = cut_into_slices({}, 16);

  EXPECT_TRUE(plan.slices.empty());
  EXPECT_EQ(plan.most_elements(), 0u);
}

TEST(StateSlicesTest, buffers_areNoLargerThanTheState) {
  EXPECT_EQ(slice_buffer_bytes(100, 12), 2400u);
  EXPECT_EQ(slice_buffer_bytes(std::size_t{1} << 40, 12), 2 * 12 * kStateSliceElements);
}

}  // namespace
}  // namespace sidestream::parallel
