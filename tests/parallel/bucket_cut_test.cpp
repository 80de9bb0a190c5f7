#include "parallel/bucket_cut.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

using ::testing::ElementsAre;

constexpr double kMs = 1e-3;
constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

std::size_t sum_of(const BucketCut& cut) {
  return std::accumulate(cut.begin(), cut.end(), std::size_t{0});
}

// Every cut of `count` parameters into at most so many buckets: bit i says whether one ends behind
// parameter i.
std::vector<BucketCut> all_cuts(std::size_t count, std::size_t most_buckets) {
  std::vector<BucketCut> cuts;
  for (unsigned bits = 0; bits < 1u << (count - 1); ++bits) {
    BucketCut cut{1};
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if ((bits >> i & 1) != 0)
        cut.push_back(1);
      else
        ++cut.back();
    }
    if (cut.size() <= most_buckets) cuts.push_back(cut);
  }
  return cuts;
}

GradientTimes random_times(std::mt19937& random, std::size_t count) {
  GradientTimes times;
  double now_s = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now_s += static_cast<double>(random() % 1000) * 1e-5;
    times.ready_s.push_back(now_s + static_cast<double>(random() % 3) * 1e-3);  // not quite sorted
    times.bytes.push_back(64 * (1 + random() % 100'000));
  }
  return times;
}

TEST(BucketCutTest, best_cut_ends_no_later_than_any_other) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    std::mt19937 random(seed);
    const std::size_t count = 1 + random() % 11;
    const GradientTimes times = random_times(random, count);
    const TransferCost cost{.latency_s = static_cast<double>(random() % 500) * 1e-5,
                            .s_per_byte = static_cast<double>(1 + random() % 50) * 1e-10,
                            .step_bytes = seed % 2 == 0 ? 1 : 1 + random() % 8'000'000};
    const std::size_t most = seed % 3 == 0 ? 1 + random() % count : kAnyNumber;
    const std::vector<BucketCut> cuts = all_cuts(count, most);
    double earliest = std::numeric_limits<double>::infinity();
    for (const BucketCut& cut : cuts)
      earliest = std::min(earliest, end_of_collectives(times, cost, cut));

    const BucketCut best = best_cut(times, cost, most);

    EXPECT_EQ(sum_of(best), count);
    EXPECT_LE(best.size(), most);
    const double ready_s = *std::max_element(times.ready_s.begin(), times.ready_s.end());
    const double end = end_of_collectives(times, cost, best);
    EXPECT_LE(end, earliest + 0.0201 * (earliest - ready_s)) << "seed " << seed;
    for (const BucketCut& cut : cuts) {
      if (end_of_collectives(times, cost, cut) <= end) {
        EXPECT_GE(cut.size(), best.size()) << "seed " << seed;
      }
    }
  }
}

TEST(BucketCutTest, what_is_ready_early_travels_early_and_the_last_bucket_is_small) {
  // Ten gradients of 10 MB, one each 10 ms; 10 MB take 8 ms.
  GradientTimes times;
  for (int i = 1; i <= 10; ++i) times.ready_s.push_back(i * 10 * kMs);
  times.bytes.assign(10, 10'000'000);
  const TransferCost cost{.latency_s = 1 * kMs, .s_per_byte = 0.8e-9};

  const BucketCut best = best_cut(times, cost, kAnyNumber);

  EXPECT_EQ(best.back(), 1u);
  EXPECT_DOUBLE_EQ(end_of_collectives(times, cost, best), 109 * kMs);
  EXPECT_DOUBLE_EQ(end_of_collectives(times, cost, {10}), 181 * kMs);
}

TEST(BucketCutTest, where_the_link_is_never_idle_latency_is_saved) {
  // All is ready at once: one bucket.
  const GradientTimes times{.ready_s = {0, 0, 0, 0}, .bytes = {1000, 1000, 1000, 1000}};
  EXPECT_THAT(best_cut(times, {.latency_s = 1 * kMs, .s_per_byte = 1e-9}, kAnyNumber),
              ElementsAre(4));
}

// Eight gradients of 1 MB, one each 10 ms: seven would travel meanwhile, but for their padding.
TEST(BucketCutTest, padding_of_buckets_is_counted) {
  GradientTimes times{.ready_s = {}, .bytes = std::vector<std::size_t>(8, 1'000'000)};
  for (int i = 1; i <= 8; ++i) times.ready_s.push_back(i * 10 * kMs);
  const TransferCost whole{.s_per_byte = 10e-9};
  const TransferCost padded{.s_per_byte = 10e-9, .step_bytes = 4'000'000};

  EXPECT_DOUBLE_EQ(end_of_collectives(times, padded, {4, 4}), 120 * kMs);
  EXPECT_DOUBLE_EQ(end_of_collectives(times, padded, {1, 7}), 160 * kMs);
  EXPECT_EQ(best_cut(times, whole, kAnyNumber).back(), 1u);
  EXPECT_THAT(best_cut(times, padded, kAnyNumber), ElementsAre(4, 4));
}

TEST(BucketCutTest, thousands_of_gradients_are_cut_too) {
  std::mt19937 random(1);
  const GradientTimes times = random_times(random, 5000);
  const TransferCost cost{.latency_s = 0.1 * kMs, .s_per_byte = 1e-9};

  const BucketCut best = best_cut(times, cost, kAnyNumber);

  EXPECT_EQ(sum_of(best), 5000u);
  EXPECT_LT(end_of_collectives(times, cost, best), end_of_collectives(times, cost, {5000}));
}

TEST(BucketCutTest, without_parameters_there_are_no_buckets) {
  EXPECT_TRUE(best_cut({}, {.latency_s = 1, .s_per_byte = 1}, kAnyNumber).empty());
}

TEST(TransferCostTest, a_line_with_one_disturbed_sample_in_five) {
  std::vector<TransferSample> samples;
  for (const std::size_t bytes : {1'000'000u, 5'000'000u, 10'000'000u, 20'000'000u, 25'000'000u})
    samples.push_back({.bytes = bytes, .seconds = 0.002 + 1e-9 * bytes});
  samples[3].seconds *= 5;

  const TransferCost cost = fit_transfer_cost(samples);

  EXPECT_NEAR(cost.s_per_byte, 1e-9, 0.2e-9);
  EXPECT_NEAR(cost.latency_s, 0.002, 0.002);
}

// As buckets of one model are: most of them of nearly one size, and one small one.
TEST(TransferCostTest, slopes_between_nearly_equal_sizes_hardly_count) {
  std::mt19937 random(1);
  std::vector<TransferSample> samples = {{.bytes = 1'180'000, .seconds = 0.0095}};
  for (int i = 0; i < 19; ++i) {
    const std::size_t bytes = 2'362'000 + random() % 7'000;
    const double noise_s = (static_cast<double>(random() % 1000) - 500) * 1e-6;
    samples.push_back({.bytes = bytes, .seconds = 8e-9 * static_cast<double>(bytes) + noise_s});
  }

  const TransferCost cost = fit_transfer_cost(samples);

  EXPECT_NEAR(cost.s_per_byte, 8e-9, 0.8e-9);
  EXPECT_LT(cost.latency_s, 0.002);
}

TEST(TransferCostTest, nothing_is_negative_and_one_size_is_not_enough) {
  const std::vector<TransferSample> falling = {{.bytes = 100, .seconds = 2},
                                               {.bytes = 200, .seconds = 1}};
  EXPECT_EQ(fit_transfer_cost(falling).s_per_byte, 0);
  EXPECT_GE(fit_transfer_cost(falling).latency_s, 1);

  const std::vector<TransferSample> alike = {{.bytes = 100, .seconds = 2},
                                             {.bytes = 100, .seconds = 1}};
  EXPECT_THROW(fit_transfer_cost(alike), core::Error);
}

}  // namespace
}  // namespace sidestream::parallel
