#include "profiling/record/open_ranges.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace sidestream::record {
namespace {

RangeRecord at(std::int64_t start_ns, NameId name) {
  RangeRecord range;
  range.start_ns = start_ns;
  range.name = name;
  return range;
}

std::optional<RangeRecord> close(OpenRanges& open) {
  const auto range = open.top();
  open.pop();
  return range;
}

TEST(OpenRangesTest, ranges_comeBackInnermostFirst) {
  OpenRanges open;
  open.push(at(1, 7));
  open.push(at(2, 8));

  EXPECT_EQ(open.innermost(), 8u);
  EXPECT_EQ(open.look().size(), 2u);
  EXPECT_EQ(close(open)->start_ns, 2);
  EXPECT_EQ(open.innermost(), 7u);
  EXPECT_EQ(close(open)->start_ns, 1);
  EXPECT_FALSE(close(open).has_value());
}

TEST(OpenRangesTest, tooDeep_isCountedAndTheRestIsIntact) {
  OpenRanges open;
  for (std::size_t i = 0; i < OpenRanges::kDeepest + 3; ++i)
    open.push(at(static_cast<std::int64_t>(i), i + 1));

  for (int i = 0; i < 3; ++i) EXPECT_FALSE(close(open).has_value());
  EXPECT_EQ(close(open)->start_ns, static_cast<std::int64_t>(OpenRanges::kDeepest) - 1);
  EXPECT_EQ(open.depth(), OpenRanges::kDeepest - 1);
}

TEST(OpenRangesTest, lookFromAnotherThread_seesOnlyWholeRanges) {
  OpenRanges open;
  std::atomic<bool> done{false};
  std::thread owner([&] {
    for (std::int64_t i = 1; i < 200'000; ++i) {
      open.push(at(i, static_cast<NameId>(i)));
      open.pop();
    }
    done = true;
  });

  bool whole = true;
  while (!done) {
    for (const RangeRecord& range : open.look())
      whole = whole && range.start_ns == static_cast<std::int64_t>(range.name);
  }
  owner.join();

  EXPECT_TRUE(whole);
}

}  // namespace
}  // namespace sidestream::record
