#include "profiling/record/range_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sidestream::record {
namespace {

// All members say the same number: a torn copy shows.
RangeRecord numbered(std::int64_t number) {
  RangeRecord record;
  record.start_ns = number;
  record.end_ns = number + 1;
  record.name = static_cast<NameId>(number + 2);
  record.has_payload = true;
  record.payload = {.bucket = number % 1000, .sequence = number + 3, .bytes = number + 4};
  return record;
}

bool is_whole(const RangeRecord& record) {
  const std::int64_t number = record.start_ns;
  return record.end_ns == number + 1 && record.name == static_cast<NameId>(number + 2) &&
         record.payload.bucket == number % 1000 && record.payload.sequence == number + 3 &&
         record.payload.bytes == number + 4 && record.has_payload;
}

TEST(RangeRingTest, everything_comesBackInOrderOnce) {
  RangeRing ring(16);
  for (int i = 0; i < 10; ++i) ring.push(numbered(i));

  const auto first = ring.take();
  ring.push(numbered(10));
  const auto second = ring.take();

  ASSERT_EQ(first.records.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first.records[static_cast<std::size_t>(i)].start_ns, i);
  ASSERT_EQ(second.records.size(), 1u);
  EXPECT_EQ(second.records[0].start_ns, 10);
  EXPECT_EQ(first.dropped + second.dropped, 0u);
}

TEST(RangeRingTest, negativeBucket_survives) {
  RangeRing ring(4);
  RangeRecord record = numbered(1);
  record.payload.bucket = -1;
  record.in_flight = true;
  ring.push(record);

  const auto taken = ring.take();

  EXPECT_EQ(taken.records.at(0).payload.bucket, -1);
  EXPECT_TRUE(taken.records.at(0).in_flight);
}

TEST(RangeRingTest, overrun_keepsTheNewestAndCountsTheRest) {
  RangeRing ring(16);
  for (int i = 0; i < 100; ++i) ring.push(numbered(i));

  const auto taken = ring.take();

  ASSERT_EQ(taken.records.size(), 15u);
  EXPECT_EQ(taken.records.front().start_ns, 85);
  EXPECT_EQ(taken.records.back().start_ns, 99);
  EXPECT_EQ(taken.dropped, 85u);
  EXPECT_EQ(taken.complete_from_ns, taken.records.front().end_ns);
}

TEST(RangeRingTest, readerBesideWriter_seesOnlyWholeRangesAndMissesNone) {
  RangeRing ring(64);
  constexpr std::int64_t kCount = 300'000;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::int64_t i = 0; i < kCount; ++i) ring.push(numbered(i));
    done = true;
  });

  std::uint64_t seen = 0, dropped = 0;
  std::int64_t last = -1;
  bool whole = true, in_order = true;
  for (bool more = true; more;) {
    more = !done;
    const auto taken = ring.take();
    dropped += taken.dropped;
    for (const RangeRecord& record : taken.records) {
      whole = whole && is_whole(record);
      in_order = in_order && record.start_ns > last;
      last = record.start_ns;
      ++seen;
    }
  }
  writer.join();

  EXPECT_TRUE(whole);
  EXPECT_TRUE(in_order);
  EXPECT_EQ(seen + dropped, static_cast<std::uint64_t>(kCount));
  EXPECT_EQ(last, kCount - 1);
}

}  // namespace
}  // namespace sidestream::record
