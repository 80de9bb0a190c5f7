#include "core/base/multiple.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace sidestream::core {
namespace {

TEST(MultipleTest, whole_units_hold_every_value) {
  for (std::int64_t unit = 1; unit < 9; ++unit) {
    for (std::int64_t value = 0; value < 40; ++value) {
      const std::int64_t units = divided_up(value, unit);
      EXPECT_GE(units * unit, value);
      EXPECT_LT((units - 1) * unit, value);
      EXPECT_EQ(rounded_up(value, unit), units * unit);
    }
  }
}

TEST(MultipleTest, unit_takes_the_type_of_the_value) {
  EXPECT_EQ(rounded_up(std::size_t{5}, 4), std::size_t{8});
}

}  // namespace
}  // namespace sidestream::core
