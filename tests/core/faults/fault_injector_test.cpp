#include "core/faults/fault_injector.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <new>
#include <string>

#include "core/base/error.hpp"

namespace sidestream::faults {
namespace {

TEST(FaultInjectorTest, pass_nothingPlanted) {
  FaultInjector none;
  none.pass(Point::kForward, 1);

  EXPECT_EQ(none.loss_factor(1), 1);
  EXPECT_FALSE(none.desynchronises(1));
  EXPECT_FALSE(none.flips_a_bit(1));
}

TEST(FaultInjectorTest, pass_onlyItsRankItsPlaceItsStep) {
  FaultInjector faults(parse_faults("throw:rank=1,step=3,at=update"), {.rank = 1});
  FaultInjector others(parse_faults("throw:rank=1,step=3,at=update"), {.rank = 0});

  others.pass(Point::kUpdate, 3);
  faults.pass(Point::kUpdate, 2);
  faults.pass(Point::kForward, 3);
  faults.pass(Point::kUpdate, 4);  // a run that was resumed behind it
  EXPECT_THROW(faults.pass(Point::kUpdate, 3), core::Error);
  faults.pass(Point::kUpdate, 3);  // once: a rollback comes by again
}

TEST(FaultInjectorTest, pass_nextCheckpointFromAStepOn) {
  FaultInjector faults(parse_faults("disk-full:step=50"), {});

  faults.pass(Point::kCheckpoint, 40);
  EXPECT_THROW(faults.pass(Point::kCheckpoint, 60), core::CheckpointError);
  faults.pass(Point::kCheckpoint, 70);
}

TEST(FaultInjectorTest, pass_firstStartOnlyUnlessTold) {
  FaultInjector second(parse_faults("memory:step=1"), {.rank = 0, .attempt = 2});
  FaultInjector always(parse_faults("memory:step=1,attempt=all"), {.rank = 0, .attempt = 2});

  second.pass(Point::kForward, 1);
  EXPECT_THROW(always.pass(Point::kForward, 1), std::bad_alloc);
}

TEST(FaultInjectorTest, lossFactor_onceAStepForSoManySteps) {
  FaultInjector faults(parse_faults("spike:step=5,steps=2,factor=3;nan:step=6"), {});

  EXPECT_EQ(faults.loss_factor(4), 1);
  EXPECT_EQ(faults.loss_factor(5), 3);
  EXPECT_EQ(faults.loss_factor(5), 1) << "the second micro-step";
  EXPECT_TRUE(std::isnan(faults.loss_factor(6)));
  EXPECT_EQ(faults.loss_factor(7), 1);
}

TEST(FaultInjectorTest, lossFactor_againAfterARollbackIfThereAreStepsLeft) {
  FaultInjector faults(parse_faults("spike:step=6,steps=2,factor=3"), {});

  EXPECT_EQ(faults.loss_factor(6), 3);
  EXPECT_EQ(faults.loss_factor(5), 1);
  EXPECT_EQ(faults.loss_factor(6), 3);
  EXPECT_EQ(faults.loss_factor(5), 1);
  EXPECT_EQ(faults.loss_factor(6), 1);
}

TEST(FaultInjectorTest, everyFaultIsTold) {
  FaultInjector faults(parse_faults("flip:step=3; desync:step=3; nan:step=3; inf-grad:step=3"), {});

  ::testing::internal::CaptureStderr();
  faults.flips_a_bit(3);
  faults.desynchronises(3);
  faults.loss_factor(3);
  EXPECT_FALSE(faults.makes_gradients_infinite(2));
  EXPECT_TRUE(faults.makes_gradients_infinite(3));
  EXPECT_FALSE(faults.makes_gradients_infinite(3)) << "the second micro-step";
  const std::string told = ::testing::internal::GetCapturedStderr();

  for (const char* name : {"planted fault: flip", "planted fault: desync", "planted fault: nan",
                           "planted fault: inf-grad"})
    EXPECT_NE(told.find(name), std::string::npos) << told;
}

TEST(FaultInjectorDeathTest, pass_endsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto meet = [](const char* text) {
    FaultInjector faults(parse_faults(text), {});
    faults.pass(Point::kForward, 1);
  };

  EXPECT_EXIT(meet("kill"), testing::KilledBySignal(SIGKILL), "planted fault: kill of every rank");
  EXPECT_EXIT(meet("exit:code=17"), testing::ExitedWithCode(17), "planted fault");
}

TEST(FaultInjectorTest, permission_isAVariable) {
  unsetenv("SIDESTREAM_FAULT_INJECTION");
  require_permission({});
  EXPECT_THROW(require_permission(parse_faults("kill")), core::ConfigError);
  setenv("SIDESTREAM_FAULT_INJECTION", "1", 1);
  require_permission(parse_faults("kill"));
  unsetenv("SIDESTREAM_FAULT_INJECTION");
}

TEST(FaultInjectorTest, ranksAndStepsThatTheRunDoesNotHaveAreRefused) {
  const auto faults = parse_faults("kill:rank=1; slow:step=20,ms=5");
  require_ranks(faults, 2);
  require_steps(faults, 20);
  EXPECT_THROW(require_ranks(faults, 1), core::ConfigError);
  EXPECT_THROW(require_steps(faults, 19), core::ConfigError);
  EXPECT_THROW(require_steps(parse_faults("kill:at=restore,step=1"), 20), core::ConfigError);
}

}  // namespace
}  // namespace sidestream::faults
