#include "profiling/verify/paired_ratio.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/base/error.hpp"

namespace sidestream::verify {
namespace {

TEST(DifferenceIntervalTest, is_that_of_student_by_hand) {
  const std::vector<Pair> pairs = {{10, 11}, {10, 12}, {10, 13}};  // mean 2, sd 1
  const auto interval = difference_interval(pairs);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->high, 2 + 4.302653 / std::sqrt(3.0), 1e-5);
  EXPECT_NEAR(interval->low, 2 - 4.302653 / std::sqrt(3.0), 1e-5);
  EXPECT_FALSE(difference_interval(std::span(pairs).first(1)));
}

constexpr int kComparisons = 2000;
constexpr std::uint64_t kSeed = 20261121;
constexpr int kPairCounts[] = {3, 5, 8, 16};

enum class Noise { kNormal, kBusyMachine };

// Runs on a machine that drifts, with 20 timed steps each of which the median is kept. A busy
// machine slows one run in twenty by 5 to 15 % and single steps by up to a half.
class Machine {
 public:
  Machine(std::uint64_t seed, Noise noise) : random_(seed), noise_(noise) {}

  double median_of_run(double step_ms) {
    drift_ += 0.002 * normal_(random_);
    double run = drift_ + 0.01 * normal_(random_);
    const bool busy = noise_ == Noise::kBusyMachine;
    if (busy && uniform_(random_) < 0.05) run += 0.05 + 0.1 * uniform_(random_);
    std::vector<double> steps(20);
    for (double& step : steps) {
      step = step_ms * std::exp(run + 0.02 * normal_(random_));
      if (busy && uniform_(random_) < 0.1) step *= 1 + 0.5 * uniform_(random_);
    }
    std::nth_element(steps.begin(), steps.begin() + 10, steps.end());
    return steps[10];
  }

  // Sides take turns in going first.
  std::vector<Pair> compare(int pairs, double ratio) {
    std::vector<Pair> result;
    for (int block = 0; block < pairs; ++block) {
      Pair pair;
      if (block % 2 == 0) pair.base = median_of_run(100);
      pair.fresh = median_of_run(100 * ratio);
      if (block % 2 == 1) pair.base = median_of_run(100);
      result.push_back(pair);
    }
    return result;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  Noise noise_;
  double drift_ = 0;
};

double false_alarms(Machine& machine, int pairs) {
  int alarms = 0;
  for (int i = 0; i < kComparisons; ++i) {
    const auto estimate = estimate_ratio(machine.compare(pairs, 1.0));
    alarms += verdict_of(*estimate) != Verdict::kNoDifferenceShown ? 1 : 0;
  }
  return static_cast<double>(alarms) / kComparisons;
}

TEST(PairedRatioTest, interval_is_students_on_logarithms) {
  // log ratios 0.01, 0.02, 0.03: mean 0.02, deviation 0.01, t(0.975, 2) = 4.302652730
  const std::vector<Pair> pairs = {
      {100, 100 * std::exp(0.01)}, {50, 50 * std::exp(0.02)}, {10, 10 * std::exp(0.03)}};

  const RatioEstimate estimate = *estimate_ratio(pairs);

  const double half = 4.302652730 * 0.01 / std::sqrt(3.0);
  EXPECT_NEAR(estimate.ratio, std::exp(0.02), 1e-9);
  EXPECT_NEAR(estimate.low, std::exp(0.02 - half), 1e-9);
  EXPECT_NEAR(estimate.high, std::exp(0.02 + half), 1e-9);
  EXPECT_NEAR(estimate.log_sd, 0.01, 1e-12);
}

TEST(PairedRatioTest, one_pair_says_nothing) {
  EXPECT_FALSE(estimate_ratio(std::vector<Pair>{{100, 50}}));
  EXPECT_FALSE(estimate_ratio({}));
}

TEST(PairedRatioTest, times_that_are_none_are_refused) {
  EXPECT_THROW(estimate_ratio(std::vector<Pair>{{100, 0}, {1, 1}}), core::Error);
  EXPECT_THROW(estimate_ratio(std::vector<Pair>{{100, NAN}, {1, 1}}), core::Error);
}

TEST(PairedRatioTest, verdict_follows_the_interval) {
  EXPECT_EQ(verdict_of({.pairs = 5, .ratio = 0.9, .low = 0.88, .high = 0.99}), Verdict::kFaster);
  EXPECT_EQ(verdict_of({.pairs = 5, .ratio = 1.1, .low = 1.01, .high = 1.2}), Verdict::kSlower);
  EXPECT_EQ(verdict_of({.pairs = 5, .ratio = 0.9, .low = 0.7, .high = 1.01}),
            Verdict::kNoDifferenceShown);
}

TEST(PairedRatioTest, equal_programs_are_rarely_called_different) {
  for (const Noise noise : {Noise::kNormal, Noise::kBusyMachine}) {
    for (const int pairs : kPairCounts) {
      Machine machine(kSeed + static_cast<std::uint64_t>(pairs), noise);
      EXPECT_LE(false_alarms(machine, pairs), 0.06)
          << pairs << " pairs, noise " << static_cast<int>(noise);
    }
  }
}

// Power by the noncentral t distribution against power by counting.
TEST(PairedRatioTest, power_is_what_simulation_finds) {
  for (const int pairs : kPairCounts) {
    std::mt19937_64 random(kSeed);
    std::normal_distribution<double> noise(std::log(1.03), 0.02);
    int found = 0;
    for (int i = 0; i < kComparisons; ++i) {
      std::vector<Pair> sample(static_cast<std::size_t>(pairs));
      for (Pair& pair : sample) pair = {1, std::exp(noise(random))};
      found += verdict_of(*estimate_ratio(sample)) == Verdict::kSlower ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(found) / kComparisons, power_of(0.02, pairs, 0.03), 0.03)
        << pairs;
  }
}

TEST(PairedRatioTest, a_true_difference_is_found_with_the_pairs_asked_for) {
  for (const Noise noise : {Noise::kNormal, Noise::kBusyMachine}) {
    for (const int pilot_pairs : kPairCounts) {
      Machine machine(kSeed, noise);
      int found = 0, planned = 0;
      for (int i = 0; i < kComparisons / 4; ++i) {
        const auto pilot = estimate_ratio(machine.compare(pilot_pairs, 1.03));
        const auto pairs = pairs_needed(*pilot, 0.03);
        if (!pairs) continue;
        ++planned;
        const auto estimate = estimate_ratio(machine.compare(*pairs, 1.03));
        found += verdict_of(*estimate) == Verdict::kSlower ? 1 : 0;
      }
      ASSERT_GT(planned, kComparisons / 4 * 9 / 10);
      EXPECT_GE(static_cast<double>(found) / planned, 0.8)
          << pilot_pairs << " pairs, noise " << static_cast<int>(noise);
    }
  }
}

TEST(PairedRatioTest, smallest_effect_has_the_power_that_it_claims) {
  const RatioEstimate estimate{.pairs = 6, .ratio = 1, .low = 0.9, .high = 1.1, .log_sd = 0.02};

  const double effect = smallest_effect(estimate);

  EXPECT_NEAR(power_of(0.02, 6, effect), kPower, 1e-6);
  EXPECT_LT(power_of(0.02, 6, effect / 2), kPower);
}

TEST(PairedRatioTest, more_scatter_needs_more_pairs) {
  const RatioEstimate calm{.pairs = 8, .log_sd = 0.01}, wild{.pairs = 8, .log_sd = 0.1};

  EXPECT_LT(*pairs_needed(calm, 0.03), *pairs_needed(wild, 0.03));
  EXPECT_FALSE(pairs_needed(wild, 0.0001));
}

TEST(PairedRatioTest, no_scatter_at_all_is_handled) {
  const std::vector<Pair> same = {{5, 5}, {5, 5}, {5, 5}};
  const RatioEstimate estimate = *estimate_ratio(same);

  EXPECT_EQ(verdict_of(estimate), Verdict::kNoDifferenceShown);
  EXPECT_LT(smallest_effect(estimate), 1e-5);
  EXPECT_LE(*pairs_needed(estimate, 0.03), 3);
}

}  // namespace
}  // namespace sidestream::verify
