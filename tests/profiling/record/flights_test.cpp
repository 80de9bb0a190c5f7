#include "profiling/record/flights.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace sidestream::record {
namespace {

RangeRecord at(std::int64_t start_ns) {
  RangeRecord range;
  range.start_ns = start_ns;
  range.name = static_cast<NameId>(start_ns);
  return range;
}

std::optional<RangeRecord> land(Flights& flights, std::uint64_t id) {
  const auto range = flights.find(id);
  if (range) flights.end(id);
  return range;
}

TEST(FlightsTest, operations_endOnceAndInAnyOrder) {
  Flights flights;
  const std::uint64_t first = flights.start(at(1));
  const std::uint64_t second = flights.start(at(2));

  ASSERT_EQ(flights.look().size(), 2u);
  EXPECT_EQ(flights.look()[0].start_ns, 1);
  EXPECT_EQ(land(flights, second)->start_ns, 2);
  EXPECT_EQ(land(flights, first)->start_ns, 1);
  EXPECT_FALSE(land(flights, first).has_value());
  EXPECT_TRUE(flights.look().empty());
  EXPECT_EQ(flights.lost(), 0u);
}

TEST(FlightsTest, moreThanPlaces_losesTheOldestAndCounts) {
  Flights flights;
  const std::uint64_t first = flights.start(at(1));
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < Flights::kPlaces; ++i) last = flights.start(at(2));

  EXPECT_FALSE(land(flights, first).has_value());
  EXPECT_TRUE(land(flights, last).has_value());
  EXPECT_EQ(flights.lost(), 1u);
}

TEST(FlightsTest, threads_keepTheirOwn) {
  // Fewer in a round than there are places: a thread that the system stops in the middle of a start
  // is not overtaken.
  constexpr std::int64_t kRounds = 50,
                         kOperations = static_cast<std::int64_t>(Flights::kPlaces) / 2 - 1;
  Flights flights;
  std::atomic<int> wrong{0};
  const auto work = [&](std::int64_t base) {
    for (std::int64_t i = base; i < base + kOperations; ++i) {
      const auto ended = land(flights, flights.start(at(i)));
      if (!ended || ended->start_ns != i) ++wrong;
    }
  };
  for (std::int64_t round = 0; round < kRounds; ++round) {
    std::thread one(work, 1), other(work, 1'000'000);
    for (const RangeRecord& range : flights.look()) {
      if (range.start_ns != static_cast<std::int64_t>(range.name)) ++wrong;
    }
    one.join();
    other.join();
  }

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(flights.lost(), 0U);
}

}  // namespace
}  // namespace sidestream::record
