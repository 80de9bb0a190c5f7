#include "launch/reporting/rate_meter.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "launch/reporting/memory_peak.hpp"

namespace sidestream::launch {
namespace {

RateMeter::TimePoint at(double seconds) {
  return RateMeter::TimePoint(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds)));
}

TEST(RateMeterTest, take_divides_total_by_total) {
  RateMeter meter(10);
  meter.add(1, {.samples = 4, .tokens = 400, .batch_s = 1, .reader_s = 0.5}, at(1));
  meter.add(2, {.samples = 4, .tokens = 400, .batch_s = 3, .reader_s = 0.1}, at(4));

  const Rates rates = meter.take();

  EXPECT_DOUBLE_EQ(rates.tokens_per_s, 200);  // the mean of the two rates would be 266.7
  EXPECT_DOUBLE_EQ(rates.samples_per_s, 2);
  EXPECT_DOUBLE_EQ(rates.batch_cost_s, 2);
  EXPECT_DOUBLE_EQ(rates.reader_cost_s, 0.3);
}

TEST(RateMeterTest, take_forgets_what_it_returned) {
  RateMeter meter(10);
  meter.add(1, {.tokens = 400, .batch_s = 1}, at(1));
  meter.take();
  meter.add(2, {.tokens = 100, .batch_s = 1}, at(2));

  EXPECT_DOUBLE_EQ(meter.take().tokens_per_s, 100);
  EXPECT_DOUBLE_EQ(meter.take().tokens_per_s, 0);
}

TEST(RateMeterTest, eta_leaves_the_first_step_out) {
  RateMeter meter(10);
  meter.add(3, {.batch_s = 100}, at(100));
  EXPECT_FALSE(meter.eta_s().has_value());

  meter.add(4, {.batch_s = 1}, at(102));
  meter.add(5, {.batch_s = 1}, at(104));

  EXPECT_DOUBLE_EQ(meter.eta_s().value(), 2.0 * 5);
}

TEST(MemoryPeakTest, sample_sees_new_memory_and_keeps_the_peak) {
  constexpr std::int64_t kBytes = 64 << 20;
  MemoryPeak peak;
  const std::int64_t before = peak.sample().value();

  std::int64_t with_block = 0;
  {
    const std::vector<char> block(kBytes, 1);
    with_block = peak.sample().value();
    ASSERT_EQ(block.back(), 1);
  }

  EXPECT_GE(with_block - before, kBytes * 9 / 10);
  EXPECT_GE(peak.sample().value(), with_block);
}

}  // namespace
}  // namespace sidestream::launch
