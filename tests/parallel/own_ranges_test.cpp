#include "parallel/own_ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/base/error.hpp"

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

void expect_every_element_once(const BucketPlan& plan, const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> covered(sizes.size(), 0);
  for (int rank = 0; rank < plan.slices; ++rank) {
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

TEST(OwnRangesTest, ranks_together_haveEveryElementOnce_inWholeBlocks) {
  for (const auto& sizes : kSizes) {
    for (const int ranks : {2, 3, 7}) {
      for (const std::size_t limit_bytes : {std::size_t{0}, std::size_t{300000}})
        expect_every_element_once(sliced_plan(sizes, ranks, limit_bytes), sizes);
    }
  }
}

// So many parameters in each of so many buckets.
std::vector<std::size_t> random_cut(std::mt19937& random, std::size_t parameters,
                                    std::size_t buckets) {
  std::vector<std::size_t> cut(buckets, 1);
  for (std::size_t i = buckets; i < parameters; ++i) ++cut[random() % buckets];
  return cut;
}

TEST(OwnRangesTest, plan_cutAnew_hasEveryElementOnceInTheSameMemory) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::size_t> sizes(1 + random() % 40);
    for (std::size_t& size : sizes) size = 1 + random() % (random() % 2 == 0 ? 100 : 5 * kBlock);
    const BucketPlan plan = sliced_plan(sizes, 2 + static_cast<int>(random() % 6), 300000);
    ASSERT_LE(plan.buckets.size(), plan.most_buckets);
    const auto cut = random_cut(random, sizes.size(), 1 + random() % plan.most_buckets);

    const BucketPlan other = cut_into_buckets(plan, sizes, core::DType::kFloat32, cut);

    EXPECT_EQ(other.buckets.size(), cut.size());
    EXPECT_EQ(other.order(), plan.order());
    EXPECT_EQ(other.most_buckets, plan.most_buckets);
    EXPECT_EQ(other.capacity_elements, plan.capacity_elements);
    EXPECT_LE(other.total_elements, plan.capacity_elements);
    for (const Bucket& bucket : other.buckets) {
      EXPECT_EQ(bucket.elements % other.step_elements(), 0u);
      EXPECT_LT(bucket.elements - bucket.used_elements, other.step_elements());
    }
    expect_every_element_once(other, sizes);
  }
}

TEST(OwnRangesTest, plan_cutIntoTheBucketsThatItHas_isTheSame) {
  for (const auto& sizes : kSizes) {
    const BucketPlan plan = sliced_plan(sizes, 3, 300000);
    std::vector<std::size_t> cut;
    for (const Bucket& bucket : plan.buckets) cut.push_back(bucket.parameters.size());

    const BucketPlan again = cut_into_buckets(plan, sizes, core::DType::kFloat32, cut);

    EXPECT_EQ(again.offsets, plan.offsets);
    EXPECT_EQ(again.total_elements, plan.total_elements);
  }
}

TEST(OwnRangesTest, plan_cutIntoMoreBucketsThanFit_isRefused) {
  const std::vector<std::size_t> sizes(100, 20);
  const BucketPlan plan = sliced_plan(sizes, 2, std::size_t{1} << 20);
  ASSERT_LT(plan.most_buckets, sizes.size());
  std::vector<std::size_t> cut(plan.most_buckets + 1, 1);
  cut.back() = sizes.size() - plan.most_buckets;

  EXPECT_THAT([&] { cut_into_buckets(plan, sizes, core::DType::kFloat32, cut); },
              ::testing::ThrowsMessage<core::Error>(
                  ::testing::HasSubstr("expected at most 15 of them, found 16")));
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
