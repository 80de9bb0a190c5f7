#include "core/data/sample_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/permutation.hpp"

namespace sidestream::data {
namespace {

std::vector<std::uint64_t> epoch_of(const SampleOrder& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < order.samples; ++i)
    samples.push_back(order.sample(epoch * order.samples + i));
  return samples;
}

TEST(PermutationTest, call_bijectiveForManySizes) {
  std::vector<std::uint64_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {1023, 1024, 1025, 4095, 4097, 65535, 65536, 65537, 100003});
  for (const std::uint64_t size : sizes) {
    const Permutation permutation(size, size * 7 + 1);
    std::vector<bool> seen(size, false);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t image = permutation(i);
      ASSERT_LT(image, size);
      ASSERT_FALSE(seen[image]) << "size " << size;
      seen[image] = true;
    }
  }
}

TEST(PermutationTest, call_stableAcrossVersions) {
  // Resuming a run with a newer program must meet the same samples.
  const Permutation permutation(10, 42);
  std::vector<std::uint64_t> images;
  for (std::uint64_t i = 0; i < 10; ++i) images.push_back(permutation(i));

  EXPECT_THAT(images, ::testing::ElementsAre(4, 6, 9, 5, 7, 2, 3, 1, 0, 8));
}

TEST(PermutationTest, call_hugeSizes) {
  for (const std::uint64_t size : {std::uint64_t{1} << 48, (std::uint64_t{1} << 61) + 5}) {
    const Permutation permutation(size, 3);
    std::set<std::uint64_t> images;
    for (std::uint64_t i = 0; i < 10000; ++i) images.insert(permutation(i));

    EXPECT_EQ(images.size(), 10000u);
    EXPECT_LT(*images.rbegin(), size);
    EXPECT_GT(*images.rbegin(), size / 2);
  }
}

TEST(SampleOrderTest, takenWithAnotherLength_goesOnBehindTheSameTokens) {
  const auto taken = [](std::uint64_t samples, std::uint64_t from, std::uint64_t to) {
    constexpr std::uint64_t kTokens = 1001;
    return taken_with_another_length(samples, {from, sample_count(kTokens, from)},
                                     {to, sample_count(kTokens, to)});
  };

  EXPECT_EQ(taken(0, 8, 16), 0u);
  EXPECT_EQ(taken(10, 8, 16), 5u);
  EXPECT_EQ(taken(11, 8, 16), 6u);  // 88 tokens reach into the sixth
  EXPECT_EQ(taken(6, 16, 8), 12u);
  EXPECT_EQ(taken(7, 8, 8), 7u);
  EXPECT_EQ(taken(125 + 10, 8, 16), 62u + 5);  // an epoch of 125 samples, and of 62
  EXPECT_EQ(taken(124, 8, 16), 62u);           // 992 tokens are all that 62 samples have
  EXPECT_EQ(taken(3, 2000, 8), 3u);            // of data that has become shorter than one sample
}

TEST(PermutationTest, constructor_sizeZero) { EXPECT_THROW(Permutation(0, 1), core::Error); }

// Chi-square of (position mod 16, image mod 16) over many epochs: 225 degrees of freedom, 5 sigma
// is 331.
TEST(PermutationTest, call_looksUniform) {
  std::vector<double> counts(256, 0.0);
  constexpr std::uint64_t kSize = 1008;
  constexpr std::uint64_t kEpochs = 100;
  for (std::uint64_t key = 0; key < kEpochs; ++key) {
    const Permutation permutation(kSize, key);
    for (std::uint64_t i = 0; i < kSize; ++i) counts[(i % 16) * 16 + permutation(i) % 16] += 1;
  }

  const double expected = static_cast<double>(kSize * kEpochs) / 256.0;
  double chi_square = 0;
  for (const double count : counts)
    chi_square += (count - expected) * (count - expected) / expected;

  EXPECT_LT(chi_square, 331.0);
}

TEST(SampleOrderTest, sample_identityWithoutShuffle) {
  const SampleOrder order{.samples = 5, .shuffle = Shuffle::kOff};

  EXPECT_THAT(epoch_of(order, 3), ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(order.epoch(4), 0u);
  EXPECT_EQ(order.epoch(5), 1u);
}

TEST(SampleOrderTest, sample_differsByEpochAndSeed) {
  const SampleOrder order{.samples = 100, .seed = 1};
  const SampleOrder other{.samples = 100, .seed = 2};

  EXPECT_NE(epoch_of(order, 0), epoch_of(order, 1));
  EXPECT_NE(epoch_of(order, 0), epoch_of(other, 0));
  EXPECT_NE(epoch_of(order, 1), epoch_of(other, 0));
  EXPECT_EQ(epoch_of(order, 7), epoch_of(order, 7));
}

TEST(SampleOrderTest, sampleCount_formula) {
  EXPECT_EQ(sample_count(0, 4), 0u);
  EXPECT_EQ(sample_count(4, 4), 0u);
  EXPECT_EQ(sample_count(5, 4), 1u);
  EXPECT_EQ(sample_count(8, 4), 1u);
  EXPECT_EQ(sample_count(9, 4), 2u);
}

TEST(BatchGeometryTest, firstIndex_formula) {
  const BatchGeometry geometry{.batch_size = 5, .grad_accumulation = 3, .rank = 1, .world_size = 4};

  EXPECT_EQ(geometry.first_index({.step = 7, .micro_step = 2}), (((7 - 1) * 3 + 2) * 4 + 1) * 5);
  EXPECT_EQ(geometry.samples_per_step(), 60u);
}

}  // namespace
}  // namespace sidestream::data
