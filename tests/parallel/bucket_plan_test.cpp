#include "parallel/bucket_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/error.hpp"
#include "parallel/bucket_size.hpp"

namespace sidestream::parallel {
namespace {

using ::testing::ElementsAre;

constexpr core::DType kFloat = core::DType::kFloat32;

struct Case {
  std::vector<std::size_t> elements;
  std::vector<std::size_t> order;
  BucketLimits limits;
};

Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  Case result;
  result.elements.resize(1 + random() % 60);
  for (std::size_t& count : result.elements) count = 1 + random() % 5000;
  result.order.resize(result.elements.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  std::shuffle(result.order.begin(), result.order.end(), random);
  result.limits = {.bucket_bytes = random() % 60000, .first_bucket_bytes = random() % 20000};
  return result;
}

TEST(BucketPlanTest, makeBucketPlan_randomSizes_holdsEveryParameterOnceInOrder) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Case given = random_case(seed);

    const BucketPlan plan = make_bucket_plan(given.elements, given.order, kFloat, given.limits);

    EXPECT_EQ(plan.order(), given.order) << "seed " << seed;
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
      for (const std::size_t i : plan.buckets[b].parameters)
        EXPECT_EQ(plan.bucket_of_parameter[i], b);
    }
  }
}

TEST(BucketPlanTest, makeBucketPlan_randomSizes_leavesNoOverlapAndNoHole) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Case given = random_case(seed);

    const BucketPlan plan = make_bucket_plan(given.elements, given.order, kFloat, given.limits);

    std::size_t expected_offset = 0;
    for (const Bucket& bucket : plan.buckets) {
      EXPECT_EQ(bucket.offset_elements, expected_offset);
      for (const std::size_t i : bucket.parameters) {
        EXPECT_EQ(plan.offsets[i], expected_offset);
        EXPECT_EQ(plan.offsets[i] * 4 % kAlignmentBytes, 0u);
        expected_offset += padded_elements(given.elements[i], kFloat);
      }
      EXPECT_EQ(bucket.offset_elements + bucket.elements, expected_offset);
    }
    EXPECT_EQ(plan.total_elements, expected_offset);
  }
}

TEST(BucketPlanTest, makeBucketPlan_randomSizes_keepsLimitsAndFillsUpToThem) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Case given = random_case(seed);

    const BucketPlan plan = make_bucket_plan(given.elements, given.order, kFloat, given.limits);

    for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
      const std::size_t limit_bytes =
          b == 0 ? std::min(given.limits.first_bucket_bytes, given.limits.bucket_bytes)
                 : given.limits.bucket_bytes;
      const std::size_t bytes = plan.buckets[b].elements * 4;
      if (plan.buckets[b].parameters.size() > 1) {
        EXPECT_LE(bytes, limit_bytes);
      }
      if (b + 1 == plan.buckets.size()) continue;
      const std::size_t next = plan.buckets[b + 1].parameters.front();
      EXPECT_GT(bytes + padded_elements(given.elements[next], kFloat) * 4, limit_bytes);
    }
  }
}

TEST(BucketPlanTest, makeBucketPlan_ofAnyOrder_takesTheSameMemory) {
  const Case given = random_case(7);

  const BucketPlan shuffled = make_bucket_plan(given.elements, given.order, kFloat, given.limits);
  const BucketPlan reversed =
      make_bucket_plan(given.elements, reverse_order(given.elements.size()), kFloat, {});

  EXPECT_EQ(shuffled.total_elements, reversed.total_elements);
  EXPECT_EQ(shuffled.total_elements * 4, padded_bytes(given.elements, kFloat));
}

TEST(BucketPlanTest, makeBucketPlan_withoutLimit_givesEveryParameterItsOwnBucket) {
  const std::vector<std::size_t> elements = {10, 20, 30};

  const BucketPlan plan = make_bucket_plan(elements, reverse_order(3), kFloat, {});

  ASSERT_EQ(plan.buckets.size(), 3u);
  EXPECT_THAT(plan.buckets[0].parameters, ElementsAre(2));
}

TEST(BucketPlanTest, makeBucketPlan_bfloat16_padsToSixtyFourBytes) {
  const std::vector<std::size_t> elements = {1, 33};

  const BucketPlan plan =
      make_bucket_plan(elements, std::vector<std::size_t>{0, 1}, core::DType::kBFloat16,
                       {.bucket_bytes = 4096, .first_bucket_bytes = 4096});

  EXPECT_THAT(plan.offsets, ElementsAre(0, 32));
  EXPECT_EQ(plan.total_elements, 96u);
}

TEST(BucketPlanTest, makeBucketPlan_orderIsNoPermutation_throws) {
  const std::vector<std::size_t> elements = {1, 2, 3};
  for (const std::vector<std::size_t>& order :
       std::vector<std::vector<std::size_t>>{{0, 1}, {0, 1, 1}, {0, 1, 3}, {}}) {
    EXPECT_THROW(make_bucket_plan(elements, order, kFloat, {}), core::Error);
  }
}

TEST(BucketPlanTest, cutIntoBuckets_ofWholeBuckets_takesAnyNumberAndAllParameters) {
  const std::vector<std::size_t> elements = {10, 20, 30, 40};
  const BucketPlan plan = make_bucket_plan(elements, reverse_order(4), kFloat,
                                           {.bucket_bytes = 4096, .first_bucket_bytes = 4096});
  const auto cut = [&](const std::vector<std::size_t>& parameters) {
    return cut_into_buckets(plan, elements, kFloat, parameters);
  };

  EXPECT_EQ(cut({1, 1, 1, 1}).buckets.size(), 4u);
  EXPECT_THAT(cut({1, 3}).buckets.at(1).parameters, ElementsAre(2, 1, 0));
  EXPECT_EQ(cut({1, 3}).offsets, plan.offsets);
  EXPECT_THROW(cut({1, 2}), core::Error);
  EXPECT_THROW(cut({2, 3}), core::Error);
}

TEST(BucketSizeTest, automaticBucketBytes_growsWithTheModelBetweenItsLimits) {
  constexpr std::size_t kMebibyte = 1 << 20;

  EXPECT_EQ(automatic_bucket_bytes(kMebibyte, 2), kMebibyte);
  EXPECT_EQ(automatic_bucket_bytes(160 * kMebibyte, 2), 10 * kMebibyte);
  EXPECT_EQ(automatic_bucket_bytes(4000 * kMebibyte, 2), 25 * kMebibyte);
  EXPECT_EQ(automatic_bucket_bytes(4000 * kMebibyte, 256), 64 * kMebibyte);
}

}  // namespace
}  // namespace sidestream::parallel
