#include "profiling/verify/convergence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::verify {
namespace {

// Four seeds; the spread of their losses is about 0.04.
class ConvergenceTest : public ::testing::Test {
 protected:
  ConvergenceResult compare(RunShape base, RunShape fresh, int pairs = 4) {
    base_.clear();
    fresh_.clear();
    for (int seed = 1; seed <= pairs; ++seed) {
      base.seed = fresh.seed = seed;
      base_.push_back(make_run(base));
      fresh_.push_back(make_run(fresh));
    }
    return compare_again();
  }
  ConvergenceResult compare_again() {
    std::vector<RunPair> pairs;
    for (std::size_t i = 0; i < base_.size(); ++i) pairs.push_back({&base_[i], &fresh_[i]});
    return compare_convergence(pairs);
  }
  std::vector<RecordedRun> base_, fresh_;
};

TEST_F(ConvergenceTest, equal_curves_are_identical) {
  const ConvergenceResult result = compare({}, {});

  EXPECT_EQ(result.verdict, Convergence::kIdentical);
  EXPECT_EQ(result.curve->points, 20);
  EXPECT_EQ(result.curve->identical_points, 20);
}

TEST_F(ConvergenceTest, one_differing_bit_is_not_identical) {
  compare({}, {});
  fresh_[2].steps[4].loss = std::nextafter(fresh_[2].steps[4].loss, 9.0);

  const ConvergenceResult result = compare_again();

  EXPECT_EQ(result.verdict, Convergence::kSame);
  EXPECT_EQ(result.curve->identical_points, 19);
}

TEST_F(ConvergenceTest, a_shift_below_the_spread_of_seeds_is_the_same) {
  const ConvergenceResult result = compare({}, {.loss_offset = 0.01});

  EXPECT_EQ(result.verdict, Convergence::kSame);
  EXPECT_NEAR(result.final_val_loss->difference, 0.01, 1e-12);
  EXPECT_GT(result.final_val_loss->spread.value(), 0.03);
  EXPECT_DOUBLE_EQ(result.curve->within_spread, 1);
}

TEST_F(ConvergenceTest, a_shift_above_it_is_worse_or_better) {
  EXPECT_EQ(compare({}, {.loss_offset = 0.2}).verdict, Convergence::kWorse);
  EXPECT_EQ(compare({}, {.loss_offset = -0.2}).verdict, Convergence::kBetter);
  EXPECT_EQ(compare({}, {.loss_offset = 0.2}).curve->within_spread, 0);
}

TEST_F(ConvergenceTest, pairs_that_disagree_show_nothing) {
  compare({}, {});
  fresh_[0].steps.back().val_loss = *fresh_[0].steps.back().val_loss + 0.3;
  fresh_[1].steps.back().val_loss = *fresh_[1].steps.back().val_loss - 0.25;

  EXPECT_EQ(compare_again().verdict, Convergence::kNotShown);
}

TEST_F(ConvergenceTest, without_validation_the_training_loss_decides) {
  const ConvergenceResult result =
      compare({.evaluated = false}, {.loss_offset = 0.2, .evaluated = false});

  EXPECT_FALSE(result.final_val_loss);
  EXPECT_EQ(result.verdict, Convergence::kWorse);
  EXPECT_THAT(result.reason, ::testing::HasSubstr("final training loss"));
}

TEST_F(ConvergenceTest, one_pair_is_identical_or_not_measured) {
  EXPECT_EQ(compare({}, {}, 1).verdict, Convergence::kIdentical);
  EXPECT_EQ(compare({}, {.loss_offset = 0.01}, 1).verdict, Convergence::kNotMeasured);
}

TEST_F(ConvergenceTest, blocks_of_one_seed_have_no_spread_to_judge_by) {
  compare({}, {.loss_offset = 0.002}, 2);
  for (auto* side : {&base_, &fresh_}) {
    (*side)[1] = (*side)[0];
    for (RecordedRun& run : *side) run.config["seed"] = "1337";
  }
  const ConvergenceResult result = compare_again();

  EXPECT_EQ(result.verdict, Convergence::kNotMeasured);
  EXPECT_EQ(result.final_val_loss->verdict, Convergence::kNotMeasured);
  EXPECT_THAT(result.reason, ::testing::HasSubstr("all blocks have seed 1337"));
  fresh_ = base_;
  EXPECT_EQ(compare_again().verdict, Convergence::kIdentical);
}

TEST_F(ConvergenceTest, a_new_side_that_ends_in_no_number_is_worse) {
  compare({.evaluated = false}, {.evaluated = false});
  fresh_[3].steps.back().loss = NAN;

  EXPECT_EQ(compare_again().verdict, Convergence::kWorse);
}

TEST_F(ConvergenceTest, a_validation_loss_that_is_no_number_is_worse) {
  compare({}, {});
  base_[3].steps[9].val_loss = fresh_[3].steps[9].val_loss = 4.5;  // a good one before it
  fresh_[3].steps.back().val_loss = NAN;

  EXPECT_EQ(compare_again().verdict, Convergence::kWorse);
  fresh_[3].steps.back().val_loss.reset();  // evaluated less often
  EXPECT_NE(compare_again().verdict, Convergence::kWorse);
}

TEST_F(ConvergenceTest, curves_that_meet_at_the_end_only_are_not_the_same) {
  compare({}, {.loss_offset = 0.001});
  for (RecordedRun& run : fresh_) {
    for (std::size_t i = 0; i < 15; ++i) run.steps[i].loss += 0.5;
  }

  const ConvergenceResult result = compare_again();

  EXPECT_EQ(result.verdict, Convergence::kNotShown);
  EXPECT_THAT(result.reason, ::testing::HasSubstr("only 25 % of the 20 points on the way"));
}

TEST_F(ConvergenceTest, validation_losses_are_those_of_one_step) {
  compare({.evaluated = false}, {.evaluated = false});
  for (RecordedRun& run : base_) {  // a loss that falls: the later one is lower
    run.steps[9].val_loss = 5.0;
    run.steps[19].val_loss = 4.0;
  }
  for (RecordedRun& run : fresh_) {
    run.steps[9].val_loss = 5.0;
    run.steps[14].val_loss = 4.5;
  }
  const ConvergenceResult at_ten = compare_again();
  ASSERT_TRUE(at_ten.final_val_loss);
  EXPECT_EQ(at_ten.final_val_loss->base, 5.0);
  EXPECT_EQ(at_ten.verdict, Convergence::kIdentical);

  for (RecordedRun& run : fresh_) run.steps[9].val_loss.reset();
  EXPECT_FALSE(compare_again().final_val_loss) << "no step has both";
}

TEST_F(ConvergenceTest, training_losses_are_those_of_the_same_steps) {
  compare({.evaluated = false}, {.loss_offset = 1e-4, .evaluated = false});
  for (RecordedRun& run : fresh_) run.steps.resize(10);  // logged less often, or ended before

  const ConvergenceResult result = compare_again();

  EXPECT_NEAR(result.final_loss->difference, 1e-4, 1e-12);
  EXPECT_EQ(result.verdict, Convergence::kSame);
}

TEST_F(ConvergenceTest, runs_without_common_steps_are_not_measured) {
  compare({}, {}, 2);
  for (RecordedRun& run : fresh_) run.steps.clear();

  EXPECT_EQ(compare_again().verdict, Convergence::kNotMeasured);
}

// A version that changes rounding only must not be called worse, whatever the seeds do.
TEST_F(ConvergenceTest, rounding_is_rarely_called_worse) {
  std::mt19937_64 random(20261121);
  std::normal_distribution<double> seeds(0, 0.02), rounding(0, 0.02);
  int worse = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<LossPair> losses;
    for (int pair = 0; pair < 5; ++pair) {
      const double base = 4 + seeds(random);
      losses.push_back({base, base + rounding(random)});
    }
    worse += judge_losses(losses)->verdict == Convergence::kWorse ? 1 : 0;
  }
  EXPECT_LE(worse, 2000 * 25 / 1000);
}

}  // namespace
}  // namespace sidestream::verify
