#include "parallel/own_ranges.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace sidestream::parallel {
namespace {

constexpr std::size_t kBlock = kSliceBlock;

const std::vector<std::vector<std::size_t>> kSizes = {
    {1},
    {3, 1, 7},
    {kBlock, kBlock, 1},
    {5 * kBlock + 3, 17, kBlock - 20, 40, 3 * kBlock, 12},
    {100000, 1, 1, 250001, 3, 16383, 16385}};

BucketPlan sliced_plan(const std::vector<std::size_t>& sizes, int ranks, std::size_t limit_bytes) {
  return make_bucket_plan(
      sizes, reverse_order(sizes.size()), core::DType::kFloat32,
      {.bucket_bytes = limit_bytes, .first_bucket_bytes = limit_bytes / 2, .slices = ranks});
}

TEST(OwnRangesTest, ranks_together_haveEveryElementOnce_inWholeBlocks) {
  for (const auto& sizes : kSizes) {
    for (const int ranks : {2, 3, 7}) {
      for (const std::size_t limit_bytes : {std::size_t{0}, std::size_t{300000}}) {
        const BucketPlan plan = sliced_plan(sizes, ranks, limit_bytes);
        std::vector<std::size_t> covered(sizes.size(), 0);
        for (int rank = 0; rank < ranks; ++rank) {
          const std::vector<OwnRange> ranges = own_ranges(plan, sizes, rank);
          for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (ranges[i].count == 0) continue;
            EXPECT_EQ(ranges[i].first, covered[i]) << "ranks have parts in their order";
            EXPECT_EQ(ranges[i].first % kBlock, 0u);
            EXPECT_TRUE(ranges[i].end() % kBlock == 0 || ranges[i].end() == sizes[i]);
            EXPECT_LE(ranges[i].offset + ranges[i].count, own_elements(plan));
            covered[i] += ranges[i].count;
          }
        }
        EXPECT_EQ(covered, sizes);
      }
    }
  }
}

TEST(OwnRangesTest, plan_ofAnyOrder_hasEqualSlicesAndFitsIntoTheCapacity) {
  for (const auto& sizes : kSizes) {
    for (const int ranks : {2, 3, 7}) {
      const BucketPlan plan = sliced_plan(sizes, ranks, 300000);
      std::vector<std::size_t> order(sizes.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      const BucketPlan other =
          make_bucket_plan(sizes, order, core::DType::kFloat32,
                           {.bucket_bytes = 300000, .first_bucket_bytes = 1, .slices = ranks});

      EXPECT_LE(plan.total_elements, plan.capacity_elements);
      EXPECT_LE(other.total_elements, plan.capacity_elements);
      for (const Bucket& bucket : other.buckets)
        EXPECT_EQ(bucket.elements % (static_cast<std::size_t>(ranks) * kBlock), 0u);
    }
  }
}

// Every parameter in a bucket of its own, as without bucketing: what fits into the padding of the
// one before has none of its own.
TEST(OwnRangesTest, plan_ofSmallParameters_fillsThePaddingOfSlices) {
  const std::vector<std::size_t> sizes = {3 * kBlock, 700, 100 * kBlock, 700, 5 * kBlock, 700};

  const BucketPlan plan = sliced_plan(sizes, 8, /*limit_bytes=*/0);

  EXPECT_EQ(plan.buckets.size(), 2u);
  EXPECT_EQ(plan.total_elements, (8 + 104) * kBlock);
  EXPECT_LE(plan.total_elements, plan.capacity_elements);
}

TEST(OwnRangesTest, plan_withoutSlices_isThatOfWholeBuckets) {
  const std::vector<std::size_t> sizes = {100, 20};
  const BucketPlan plan =
      make_bucket_plan(sizes, reverse_order(2), core::DType::kFloat32,
                       {.bucket_bytes = 1 << 20, .first_bucket_bytes = 1 << 20});

  EXPECT_EQ(plan.total_elements, 144u);
  EXPECT_EQ(plan.capacity_elements, 144u);
}

}  // namespace
}  // namespace sidestream::parallel
