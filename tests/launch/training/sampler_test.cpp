#include "launch/generation/sampler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sidestream::launch {
namespace {

TEST(SamplerTest, pick_without_temperature_takes_the_likeliest_and_of_equals_the_first) {
  const std::array<float, 4> logits = {0.5f, 2.0f, 2.0f, -1.0f};
  Sampler sampler({.temperature = 0, .top_k = 0, .seed = 1});

  EXPECT_EQ(sampler.pick(logits), 1);
}

TEST(SamplerTest, pick_with_top_k_leaves_the_others_out) {
  const std::array<float, 5> logits = {1.0f, 1.1f, -50.0f, 1.2f, 0.9f};
  Sampler sampler({.temperature = 10, .top_k = 2, .seed = 3});

  for (int i = 0; i < 200; ++i) {
    const auto token = sampler.pick(logits);
    EXPECT_TRUE(token == 1 || token == 3) << token;
  }
}

TEST(SamplerTest, pick_draws_in_proportion_to_the_softmax) {
  const std::array<float, 2> logits = {0.0f, 1.0986123f};  // 1 : 3
  Sampler sampler({.temperature = 1, .top_k = 0, .seed = 5});
  int seconds = 0;

  for (int i = 0; i < 20000; ++i) seconds += static_cast<int>(sampler.pick(logits));

  EXPECT_NEAR(seconds / 20000.0, 0.75, 0.015);
}

TEST(SamplerTest, pick_repeats_with_the_seed) {
  const std::vector<float> logits(100, 0.0f);
  Sampler first({.seed = 9}), second({.seed = 9}), other({.seed = 10});
  std::vector<std::int64_t> a, b, c;

  for (int i = 0; i < 20; ++i) {
    a.push_back(first.pick(logits));
    b.push_back(second.pick(logits));
    c.push_back(other.pick(logits));
  }

  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace sidestream::launch
