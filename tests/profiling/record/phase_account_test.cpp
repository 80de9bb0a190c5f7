#include "profiling/record/phase_account.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sidestream::record {
namespace {

using ranges::Phase;

class PhaseAccountTest : public ::testing::Test {
 protected:
  void SetUp() override {  // the first step is left out
    account_.begin_step(0);
    account_.end_step(10);
  }
  PhaseAccount account_;
};

TEST_F(PhaseAccountTest, step_isSharedOut) {
  account_.begin_step(100);
  account_.add_phase(Phase::kData, 100, 110);
  account_.add_phase(Phase::kForward, 110, 150);
  account_.add_collective(130, 170);  // 20 hidden, 20 exposed
  account_.add_phase(Phase::kForward, 180, 190);
  account_.end_step(200);

  const PhaseTotals& totals = account_.totals();
  EXPECT_EQ(totals.steps, 1);
  EXPECT_EQ(totals.window_ns, 100);
  EXPECT_EQ(totals.io_ns, 10);
  EXPECT_EQ(totals.compute_ns, 50);
  EXPECT_EQ(totals.comm_ns, 20);
  EXPECT_EQ(totals.other_ns(), 20);
}

TEST_F(PhaseAccountTest, collectivesOfOneTime_countOnce) {
  account_.begin_step(0);
  account_.add_collective(10, 60);
  account_.add_collective(20, 40);
  account_.add_collective(50, 70);
  account_.end_step(100);

  EXPECT_EQ(account_.totals().comm_ns, 60);
}

TEST_F(PhaseAccountTest, whatIsBetweenSteps_doesNotCount) {
  account_.add_collective(20, 90);
  account_.begin_step(100);
  account_.add_collective(90, 120);  // begun before, ended inside
  account_.add_phase(Phase::kCheckpoint, 150, 160);
  account_.end_step(200);

  EXPECT_EQ(account_.totals().comm_ns, 20);
  EXPECT_EQ(account_.totals().other_ns(), 80);
}

// A barrier inside the optimizer, and one between the phases.
TEST_F(PhaseAccountTest, waitingInsideAPhase_isNoComputing) {
  account_.begin_step(0);
  account_.add_collective(10, 15);
  account_.add_wait(10, 15);
  account_.add_collective(30, 70);
  account_.add_wait(30, 70);
  account_.add_phase(Phase::kOptimizer, 20, 80);
  account_.end_step(100);

  EXPECT_EQ(account_.totals().compute_ns, 20);
  EXPECT_EQ(account_.totals().comm_ns, 45);
  EXPECT_EQ(account_.totals().other_ns(), 35);
  EXPECT_EQ(account_.history().newest().at(0).phase_ns[static_cast<std::size_t>(Phase::kOptimizer)],
            20);
}

// As --grad-accumulation 1000 makes them, with four buckets each.
TEST_F(PhaseAccountTest, manyMicroSteps_areOneStep) {
  constexpr int kMicroSteps = 1000;
  account_.begin_step(0);
  for (int i = 0; i < kMicroSteps; ++i) {
    const std::int64_t at = i * 100;
    account_.add_phase(Phase::kData, at, at + 10);
    account_.add_phase(Phase::kForward, at + 10, at + 40);
    account_.add_phase(Phase::kBackward, at + 40, at + 90);
    for (int bucket = 0; bucket < 4; ++bucket) account_.add_collective(at + 92, at + 95 + bucket);
  }
  account_.end_step(kMicroSteps * 100);

  const PhaseTotals& totals = account_.totals();
  EXPECT_EQ(totals.uncounted_steps, 0);
  EXPECT_EQ(totals.io_ns, kMicroSteps * 10);
  EXPECT_EQ(totals.compute_ns, kMicroSteps * 80);
  EXPECT_EQ(totals.comm_ns, kMicroSteps * 6);
}

TEST_F(PhaseAccountTest, tooMuchForAStep_leavesTheStepOutAndSaysSo) {
  account_.begin_step(0);
  for (int i = 0; i < 10'000; ++i) account_.add_phase(Phase::kForward, i, i + 1);
  account_.end_step(20'000);

  EXPECT_EQ(account_.totals().steps, 0);
  EXPECT_EQ(account_.totals().uncounted_steps, 1);
}

// Against the same question asked nanosecond by nanosecond.
TEST_F(PhaseAccountTest, randomSteps_agreeWithCounting) {
  std::mt19937 random(7);
  const auto pick = [&](int below) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 200; ++round) {
    PhaseAccount account;
    account.begin_step(0);
    account.end_step(1);
    constexpr int kLength = 400;
    std::vector<char> phase(kLength, 0), flight(kLength, 0);
    account.begin_step(0);
    std::int64_t at = pick(20);
    while (at < kLength - 30) {
      const std::int64_t end = at + 1 + pick(30);
      const bool io = pick(4) == 0;
      account.add_phase(io ? Phase::kData : Phase::kForward, at, end);
      std::fill(phase.begin() + at, phase.begin() + end, io ? 'i' : 'c');
      at = end + pick(25);
    }
    for (std::int64_t i = pick(12); i > 0; --i) {
      const std::int64_t start = pick(kLength - 60), end = start + pick(60);
      account.add_collective(start, end);
      std::fill(flight.begin() + start, flight.begin() + end, 1);
    }
    account.end_step(kLength);

    PhaseTotals counted;
    for (int i = 0; i < kLength; ++i) {
      const auto n = static_cast<std::size_t>(i);
      counted.io_ns += phase[n] == 'i';
      counted.compute_ns += phase[n] == 'c';
      counted.comm_ns += phase[n] == 0 && flight[n] == 1;
    }
    ASSERT_EQ(account.totals().io_ns, counted.io_ns);
    ASSERT_EQ(account.totals().compute_ns, counted.compute_ns);
    ASSERT_EQ(account.totals().comm_ns, counted.comm_ns) << "round " << round;
  }
}

}  // namespace
}  // namespace sidestream::record
