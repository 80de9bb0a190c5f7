#include "core/optim/spike_detector.hpp"

#include <gtest/gtest.h>

namespace sidestream::optim {
namespace {

TEST(SpikeDetectorTest, zscore_nothingBeforeTheWindowIsFull) {
  SpikeDetector detector;
  for (std::size_t i = 0; i + 1 < SpikeDetector::kWindow; ++i)
    detector.keep(static_cast<double>(i));
  EXPECT_FALSE(detector.zscore(1e9));
  detector.keep(1);
  EXPECT_TRUE(detector.zscore(1e9));
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
