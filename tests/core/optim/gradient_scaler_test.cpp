#include "core/optim/gradient_scaler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace sidestream::optim {
namespace {

constexpr LossScaleConfig kDynamic{.kind = LossScaling::kDynamic, .scale = 1024, .interval = 3};

TEST(GradientScalerTest, starts_as_pytorchs) {
  const GradientScaler scaler({.kind = LossScaling::kDynamic});

  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(LossScaleConfig{}.interval, 2000);
}

TEST(GradientScalerTest, doubles_after_steps_in_a_row_and_halves_at_once) {
  GradientScaler scaler(kDynamic);

  for (int i = 0; i < 3; ++i) EXPECT_EQ(scaler.update(true), UpdateVerdict::kTake);
  EXPECT_EQ(scaler.scale(), 2048);
  scaler.update(true);
  scaler.update(true);
  EXPECT_EQ(scaler.update(false), UpdateVerdict::kLeaveOut);
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_EQ(scaler.state().left_out, 1);
  scaler.update(true);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1024) << "counted from the step that was left out";
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 2048);
}

TEST(GradientScalerTest, gives_up_below_the_least_scale_and_keeps_its_state) {
  GradientScaler scaler({.kind = LossScaling::kDynamic, .scale = 2});

  EXPECT_EQ(scaler.update(false), UpdateVerdict::kLeaveOut);
  const LossScaleState before = scaler.state();
  EXPECT_EQ(scaler.update(false), UpdateVerdict::kGiveUp);

  EXPECT_EQ(before.scale, kLeastLossScale);
  EXPECT_EQ(scaler.state(), before);
}

TEST(GradientScalerTest, scale_stays_a_finite_float) {
  GradientScaler scaler({.kind = LossScaling::kDynamic, .scale = kMostLossScale, .interval = 1});

  for (int i = 0; i < 200; ++i) scaler.update(true);

  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(GradientScalerTest, fixed_scale_and_none_take_every_update) {
  for (const LossScaling kind : {LossScaling::kOff, LossScaling::kFixed}) {
    GradientScaler scaler({.kind = kind, .scale = 512, .interval = 1});
    for (const bool finite : {true, false, true})
      EXPECT_EQ(scaler.update(finite), UpdateVerdict::kTake);
    EXPECT_EQ(scaler.scale(), kind == LossScaling::kFixed ? 512 : 1);
  }
}

TEST(GradientScalerTest, goes_on_from_what_was_saved) {
  GradientScaler whole(kDynamic), first(kDynamic);
  for (const bool finite : {true, false, true, true}) {
    whole.update(finite);
    first.update(finite);
  }
  GradientScaler rest(kDynamic);
  rest.restore(first.state());

  for (const bool finite : {true, true, false, true}) {
    EXPECT_EQ(rest.update(finite), whole.update(finite));
    EXPECT_EQ(rest.state(), whole.state());
  }
}

// An interval that is shorter than the steps that were good so far.
TEST(GradientScalerTest, goes_on_with_a_shorter_interval) {
  GradientScaler scaler({.kind = LossScaling::kDynamic, .scale = 8, .interval = 3});
  scaler.restore({.scale = 8, .good_steps = 1000});

  scaler.update(true);

  EXPECT_EQ(scaler.scale(), 16);
}

TEST(GradientScalerTest, fixed_scale_of_a_resumed_run_is_the_one_asked_for) {
  GradientScaler scaler({.kind = LossScaling::kFixed, .scale = 256});

  scaler.restore({.scale = 4096, .good_steps = 7, .left_out = 3});

  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_EQ(scaler.state().left_out, 3);
}

TEST(GradientScalerTest, validate_names_the_flag) {
  const auto message_of = [](const LossScaleConfig& config) {
    try {
      config.validate();
    } catch (const core::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_EQ(message_of(kDynamic), "");
  EXPECT_THAT(message_of({.kind = LossScaling::kFixed, .scale = 0.5}),
              testing::StartsWith("--loss-scale"));
  EXPECT_THAT(message_of({.kind = LossScaling::kDynamic, .interval = 0}),
              testing::HasSubstr("--loss-scale-interval: expected at least 1 step, found 0"));
}

}  // namespace
}  // namespace sidestream::optim
