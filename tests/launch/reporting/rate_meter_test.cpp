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

// A process of 40 ms a walk.
struct FakeMemory {
  std::int64_t pss_bytes = 100, resident_bytes = 200;
  std::chrono::steady_clock::time_point time{};
  int walks = 0;

  MemorySource source() {
    return {.pss_bytes =
                [this] {
                  ++walks;
                  time += std::chrono::milliseconds(40);
                  return pss_bytes;
                },
            .most_resident_bytes = [this] { return resident_bytes; },
            .now = [this] { return time; }};
  }
};

TEST(MemoryPeakTest, walks_only_when_memory_grew_and_never_for_more_than_a_small_share_of_time) {
  FakeMemory memory;
  MemoryPeak peak(memory.source());

  EXPECT_EQ(peak.sample(), 100);
  for (int step = 0; step < 100; ++step) {
    memory.time += std::chrono::seconds(1);
    EXPECT_EQ(peak.sample(), 100);
  }
  EXPECT_EQ(memory.walks, 1);  // nothing grew

  memory.pss_bytes = 150;
  memory.resident_bytes = 250;
  EXPECT_EQ(peak.sample(), 150);
  EXPECT_EQ(memory.walks, 2);

  memory.pss_bytes = 170;
  memory.resident_bytes = 270;
  EXPECT_EQ(peak.sample(), 150);  // too soon
  memory.time += std::chrono::seconds(21);
  EXPECT_EQ(peak.sample(), 170);
  memory.pss_bytes = 1;
  memory.resident_bytes = 280;
  memory.time += std::chrono::seconds(21);
  EXPECT_EQ(peak.sample(), 170);
  EXPECT_EQ(memory.walks, 4);
}

TEST(MemoryPeakTest, figures_of_this_process_see_new_memory) {
  constexpr std::int64_t kBytes = 64 << 20;
  const std::int64_t before = current_pss_bytes().value();

  const std::vector<char> block(kBytes, 1);

  ASSERT_EQ(block.back(), 1);
  EXPECT_GE(current_pss_bytes().value() - before, kBytes * 9 / 10);
  EXPECT_GE(most_resident_bytes().value(), before / 2 + kBytes);
  EXPECT_GE(MemoryPeak().sample().value(), kBytes);
}

}  // namespace
}  // namespace sidestream::launch
