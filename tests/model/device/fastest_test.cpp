#include "model/device/fastest.hpp"

#include <gtest/gtest.h>

namespace sidestream::model::device {
namespace {

TEST(FastestTest, is_the_one_of_least_median_time) {
  const float times[] = {5, 4, 3, 6};
  EXPECT_EQ(fastest(4, [&](std::size_t way) { return times[way]; }), 2u);
}

TEST(FastestTest, is_not_misled_by_single_times) {
  int calls = 0;
  const auto time = [&](std::size_t way) {
    ++calls;
    if (way == 1) return calls > 4 && calls % 5 == 0 ? 100.0f : 2.0f;  // seldom slow
    return calls % 5 == 0 ? 0.1f : 3.0f;                               // seldom fast
  };
  EXPECT_EQ(fastest(2, time), 1u);
}

TEST(FastestTest, is_the_recommended_one_where_none_is_clearly_faster) {
  const float times[] = {1.0f, 0.995f, 0.992f};
  EXPECT_EQ(fastest(3, [&](std::size_t way) { return times[way]; }), 0u);
}

TEST(FastestTest, is_not_decided_by_a_clock_that_falls) {
  float slower = 1;
  const float times[] = {1.0f, 0.9f, 1.1f};
  const auto time = [&](std::size_t way) { return (slower *= 1.02f) * times[way]; };
  EXPECT_EQ(fastest(3, time), 1u);
}

TEST(FastestTest, leaves_the_first_time_of_each_out) {
  std::array<int, 2> calls = {};
  const auto time = [&](std::size_t way) {
    if (calls[way]++ == 0) return way == 0 ? 1.0f : 1e6f;
    return way == 0 ? 3.0f : 2.0f;
  };
  EXPECT_EQ(fastest(2, time), 1u);
}

TEST(FastestTest, needs_no_time_where_there_is_no_choice) {
  EXPECT_EQ(fastest(1,
                    [](std::size_t) -> float {
                      ADD_FAILURE() << "was timed";
                      return 0;
                    }),
            0u);
}

}  // namespace
}  // namespace sidestream::model::device
