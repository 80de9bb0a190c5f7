#include "profiling/record/names.hpp"

#include <gtest/gtest.h>

namespace sidestream::record {
namespace {

TEST(NameTableTest, phases_haveFixedNumbers) {
  NameTable names;

  for (std::size_t i = 0; i < ranges::kPhaseCount; ++i) {
    const auto phase = static_cast<ranges::Phase>(i);
    EXPECT_EQ(names.intern(ranges::name_of(phase)), id_of(phase));
    EXPECT_TRUE(is_phase(id_of(phase)));
    EXPECT_EQ(category_of(id_of(phase)), ranges::info_of(phase).category);
  }
}

TEST(NameTableTest, steps_needNoRoom) {
  NameTable names;

  for (int step = 0; step < 200'000; ++step) names.intern(ranges::step_name(step));
  const NameId layer = names.intern("transformer.h.3.mlp");

  EXPECT_EQ(layer, ranges::kPhaseCount + 1);
  const NameId step = names.intern("ProfilerStep#123456789");
  EXPECT_TRUE(is_step(step));
  EXPECT_EQ(step_of(step), 123456789);
  EXPECT_EQ(names.text(step), "ProfilerStep#123456789");
  EXPECT_FALSE(is_step(names.intern("ProfilerStep#12x")));
}

TEST(NameTableTest, names_areKeptOnceAndBounded) {
  NameTable names;

  EXPECT_EQ(names.intern("a"), names.intern("a"));
  for (std::size_t i = 0; i < NameTable::kMostNames; ++i) names.intern("n" + std::to_string(i));

  EXPECT_EQ(names.intern("one too many"), kOtherName);
  EXPECT_EQ(names.text(kOtherName), "other");
  EXPECT_EQ(names.text(names.intern("a")), "a");
}

}  // namespace
}  // namespace sidestream::record
