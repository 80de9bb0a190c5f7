#include "core/optim/spike_detector.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sidestream::optim {
namespace {

TEST(SpikeDetectorTest, zscore_nothingOfFewerThanThirtyTwo) {
  SpikeDetector detector;
  for (std::size_t i = 0; i + 1 < SpikeDetector::kFewest; ++i)
    detector.keep(static_cast<double>(i));
  EXPECT_FALSE(detector.zscore(1e9));
  detector.keep(1);
  EXPECT_TRUE(detector.zscore(1e9));
}

// Half ones, half threes: mean 2, and s sqrt(1 + 1/n) = sqrt(n / (n - 1) (1 + 1/n)).
SpikeDetector ones_and_threes(std::size_t count) {
  SpikeDetector detector;
  for (std::size_t i = 0; i < count; ++i) detector.keep(i % 2 == 0 ? 1 : 3);
  return detector;
}

double score_at(double t, std::size_t count) {
  const auto n = static_cast<double>(count);
  return *ones_and_threes(count).zscore(2 + t * std::sqrt(n / (n - 1) * (1 + 1 / n)));
}

// The tail of Student's distribution and the inverse of the normal one, to 60 digits (mpmath).
TEST(SpikeDetectorTest, zscore_ofFewIsAsImprobableAsStudentsT) {
  struct Known {
    std::size_t count;
    double t, z;
  };
  for (const Known& known :
       {Known{32, 3, 2.788899544}, Known{32, 8, 5.849171886}, Known{32, 15, 8.036073007},
        Known{64, 8, 6.620993416}, Known{64, 15, 9.751229005}}) {
    EXPECT_NEAR(score_at(known.t, known.count), known.z, 0.003 * known.z) << known.t;
    EXPECT_NEAR(score_at(-known.t, known.count), -known.z, 0.003 * known.z) << known.t;
  }
}

TEST(SpikeDetectorTest, zscore_ofFewNeedsMoreThanOfAFullWindow) {
  EXPECT_LT(*ones_and_threes(32).zscore(2 + 15.3), 8);
  EXPECT_GT(*ones_and_threes(32).zscore(2 + 15.4), 8);
  EXPECT_LT(*ones_and_threes(64).zscore(2 + 10.7), 8);
  EXPECT_GT(*ones_and_threes(64).zscore(2 + 10.8), 8);
  EXPECT_EQ(*ones_and_threes(128).zscore(2 + 8.5), 8.5);
}

TEST(SpikeDetectorTest, zscore_ofHalfOnesHalfThrees) {
  SpikeDetector detector;
  detector.keep(1e9);  // falls out of the window
  for (std::size_t i = 0; i < SpikeDetector::kWindow; ++i) detector.keep(i % 2 == 0 ? 1 : 3);

  EXPECT_DOUBLE_EQ(*detector.zscore(2), 0);
  EXPECT_DOUBLE_EQ(*detector.zscore(9), 7);
  EXPECT_DOUBLE_EQ(*detector.zscore(0), -2);
}

TEST(SpikeDetectorTest, zscore_nothingWhereNothingVaries) {
  SpikeDetector detector;
  for (std::size_t i = 0; i < SpikeDetector::kWindow; ++i) detector.keep(2);
  EXPECT_FALSE(detector.zscore(3));
}

TEST(SpikeDetectorTest, restore_givesTheSameScores) {
  SpikeDetector detector, resumed;
  for (int i = 0; i < 200; ++i) detector.keep(1.0 / (i + 3));
  resumed.restore(detector.values());
  EXPECT_EQ(*detector.zscore(0.7), *resumed.zscore(0.7));
}

}  // namespace
}  // namespace sidestream::optim
