#include "core/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"

namespace sidestream::optim {
namespace {

ScheduleConfig config_of(ScheduleKind kind) {
  return {.kind = kind, .lr = 1.0, .min_lr_ratio = 0.1, .steps = 100, .warmup_steps = 10};
}

// nanoGPT's get_lr with llm.c's warm-up, written with their counting from 0.
double reference_cosine(const ScheduleConfig& c, std::int64_t iteration) {
  if (iteration < c.warmup_steps)
    return c.lr * static_cast<double>(iteration + 1) / static_cast<double>(c.warmup_steps);
  const double ratio = static_cast<double>(iteration - c.warmup_steps) /
                       static_cast<double>(c.steps - c.warmup_steps);
  const double lowest = c.lr * c.min_lr_ratio;
  return lowest + 0.5 * (1 + std::cos(M_PI * ratio)) * (c.lr - lowest);
}

TEST(ScheduleTest, warm_up_rises_linearly_to_the_highest_rate) {
  for (const auto kind : {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine,
                          ScheduleKind::kWsd}) {
    EXPECT_DOUBLE_EQ(learning_rate(config_of(kind), 1), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(config_of(kind), 5), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate(config_of(kind), 10), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(config_of(kind), 11), 1.0);
  }
}

TEST(ScheduleTest, cosine_equals_reference_at_every_step) {
  const auto config = config_of(ScheduleKind::kCosine);
  for (std::int64_t step = 1; step <= config.steps; ++step) {
    ASSERT_NEAR(learning_rate(config, step), reference_cosine(config, step - 1), 1e-15) << step;
  }
}

TEST(ScheduleTest, constant_stays) {
  EXPECT_DOUBLE_EQ(learning_rate(config_of(ScheduleKind::kConstant), 1000), 1.0);
}

TEST(ScheduleTest, linear_falls_by_the_same_amount_each_step) {
  const auto config = config_of(ScheduleKind::kLinear);

  EXPECT_DOUBLE_EQ(learning_rate(config, 56), 0.1 + 0.9 * 0.5);
  EXPECT_NEAR(learning_rate(config, 100), 0.1 + 0.9 / 90, 1e-15);
  EXPECT_NEAR(learning_rate(config, 101), 0.1, 1e-15);
}

TEST(ScheduleTest, wsd_is_steady_until_the_last_fifth) {
  const auto config = config_of(ScheduleKind::kWsd);

  EXPECT_DOUBLE_EQ(learning_rate(config, 80), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 81), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 91), 0.1 + 0.9 * 0.5);
  EXPECT_NEAR(learning_rate(config, 100), 0.1 + 0.9 / 20, 1e-15);
}

TEST(ScheduleTest, after_the_last_step_the_lowest_rate_stays) {
  for (const auto kind : {ScheduleKind::kLinear, ScheduleKind::kCosine, ScheduleKind::kWsd}) {
    EXPECT_NEAR(learning_rate(config_of(kind), 101), 0.1, 1e-15);
    EXPECT_NEAR(learning_rate(config_of(kind), 100000), 0.1, 1e-15);
  }
}

TEST(ScheduleTest, warm_up_longer_than_the_run_never_decays_within_it) {
  auto config = config_of(ScheduleKind::kWsd);
  config.steps = 5;

  EXPECT_DOUBLE_EQ(learning_rate(config, 5), 0.5);
}

TEST(ScheduleTest, names_are_read_back_and_others_refused) {
  for (const auto kind : {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine,
                          ScheduleKind::kWsd}) {
    EXPECT_EQ(parse_schedule_kind(name_of(kind)), kind);
  }
  EXPECT_THROW(parse_schedule_kind("cos"), core::ConfigError);
}

TEST(ScheduleTest, validate_refuses_values_out_of_range) {
  EXPECT_NO_THROW(config_of(ScheduleKind::kWsd).validate());
  EXPECT_THROW((ScheduleConfig{.lr = -1}).validate(), core::ConfigError);
  EXPECT_THROW((ScheduleConfig{.lr = std::nan("")}).validate(), core::ConfigError);
  EXPECT_THROW((ScheduleConfig{.min_lr_ratio = 1.5}).validate(), core::ConfigError);
  EXPECT_THROW((ScheduleConfig{.warmup_steps = -1}).validate(), core::ConfigError);
  EXPECT_THROW((ScheduleConfig{.steps = -1}).validate(), core::ConfigError);
}

TEST(ScheduleTest, step_below_one_throws) {
  EXPECT_THROW(learning_rate(config_of(ScheduleKind::kCosine), 0), core::Error);
}

}  // namespace
}  // namespace sidestream::optim
