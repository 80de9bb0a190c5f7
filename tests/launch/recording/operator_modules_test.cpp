#include "launch/recording/operator_modules.hpp"

#include <gtest/gtest.h>

namespace sidestream::launch {
namespace {

OperatorPlace forward(std::int64_t start_ns, std::int64_t end_ns, std::int64_t sequence = -1) {
  return {.thread_id = 1, .start_ns = start_ns, .end_ns = end_ns, .sequence = sequence};
}

OperatorModules two_layers(const std::string& pattern) {
  OperatorModules modules(pattern);
  modules.add_layer(1, 100, 200, "h.0");
  modules.add_layer(1, 120, 150, "h.0.mlp");
  modules.add_layer(1, 200, 300, "h.1");
  return modules;
}

TEST(OperatorModulesTest, forward_isOfTheInnermostLayer) {
  OperatorModules modules = two_layers("on");

  EXPECT_EQ(modules.module_of(forward(110, 115)), "h.0");
  EXPECT_EQ(modules.module_of(forward(125, 130)), "h.0.mlp");
  EXPECT_EQ(modules.module_of(forward(160, 170)), "h.0");
  EXPECT_EQ(modules.module_of(forward(210, 220)), "h.1");
  EXPECT_EQ(modules.module_of(forward(50, 60)), "");
  EXPECT_EQ(modules.module_of(forward(190, 210)), "");
  EXPECT_EQ(modules.module_of({.thread_id = 2, .start_ns = 110, .end_ns = 115}), "");
}

TEST(OperatorModulesTest, aPatternThatNothingMatches_isTold) {
  EXPECT_TRUE(two_layers("h.*.mlp").any_layer());
  const OperatorModules none = two_layers("nosuch*");
  EXPECT_FALSE(none.any_layer());
  EXPECT_EQ(none.other_layer(), "h.0");
}

TEST(OperatorModulesTest, backward_isOfTheLayerOfItsForward) {
  OperatorModules modules = two_layers("on");
  modules.note(forward(125, 130, 41));
  modules.note(forward(126, 129, 41));
  const OperatorPlace node{
      .thread_id = 2, .start_ns = 900, .end_ns = 950, .sequence = 41, .is_backward = true};
  modules.note(node);

  EXPECT_EQ(modules.module_of(node), "h.0.mlp");
  EXPECT_EQ(modules.module_of({.thread_id = 2, .start_ns = 910, .end_ns = 940}), "h.0.mlp");
  EXPECT_EQ(modules.module_of({.thread_id = 2, .start_ns = 960, .end_ns = 970}), "");
}

// On a GPU backward has a thread of its own, whose numbers begin anew: what it computes again in
// the backward of number 41 has the numbers 40 and 41 too.
TEST(OperatorModulesTest, computedAgain_isOfItsOwnLayer) {
  OperatorModules modules = two_layers("on");
  modules.add_layer(2, 905, 920, "h.0.attn");
  const auto on_two = [](std::int64_t start_ns, std::int64_t end_ns, std::int64_t sequence,
                         bool is_backward) {
    return OperatorPlace{.thread_id = 2,
                         .start_ns = start_ns,
                         .end_ns = end_ns,
                         .sequence = sequence,
                         .is_backward = is_backward};
  };
  modules.note(forward(210, 215, 40));
  modules.note(forward(216, 220, 41));
  const OperatorPlace outer = on_two(900, 950, 41, true), again = on_two(906, 910, 40, false),
                      inner = on_two(930, 940, 40, true), later = on_two(960, 970, 40, true);
  for (const OperatorPlace& place : {outer, again, inner, later}) modules.note(place);

  EXPECT_EQ(modules.module_of(again), "h.0.attn");
  EXPECT_EQ(modules.module_of(inner), "h.0.attn");
  EXPECT_EQ(modules.module_of(on_two(932, 934, -1, false)), "h.0.attn");
  EXPECT_EQ(modules.module_of(outer), "h.1");
  EXPECT_EQ(modules.module_of(later), "h.1");
}

TEST(OperatorModulesTest, pattern_choosesLayers) {
  OperatorModules modules = two_layers("h.*.mlp");

  EXPECT_EQ(modules.module_of(forward(125, 130)), "h.0.mlp");
  EXPECT_EQ(modules.module_of(forward(160, 170)), "");
}

}  // namespace
}  // namespace sidestream::launch
