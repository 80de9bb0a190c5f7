#include "profiling/record/verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "profiling/record/phase_history.hpp"
#include "profiling/record/verdict_text.hpp"

namespace sidestream::record {
namespace {

using ranges::Phase;

constexpr std::int64_t kMs = 1'000'000;

struct Shape {
  std::int64_t data_ms = 1;
  std::int64_t forward_ms = 5;
  std::int64_t comm_ms = 3;
  std::int64_t other_ms = 1;
  std::int64_t backward_ms = 0;
};

StepTimes step_of(std::int64_t number, const Shape& shape, std::int64_t jitter_ns) {
  StepTimes step{.number = number, .comm_ns = shape.comm_ms * kMs};
  step.phase_ns[static_cast<std::size_t>(Phase::kData)] = shape.data_ms * kMs;
  step.phase_ns[static_cast<std::size_t>(Phase::kForward)] = shape.forward_ms * kMs + jitter_ns;
  step.phase_ns[static_cast<std::size_t>(Phase::kBackward)] = shape.backward_ms * kMs;
  step.window_ns =
      (shape.data_ms + shape.forward_ms + shape.backward_ms + shape.comm_ms + shape.other_ms) *
          kMs +
      jitter_ns;
  return step;
}

RankAccount account_of(int steps, const Shape& shape) {
  RankAccount account;
  for (int i = 0; i < steps; ++i) {
    account.newest.push_back(step_of(i + 2, shape, (i % 5) * 1000));
    account.totals.add(account.newest.back());
  }
  return account;
}

TEST(RunVerdictTest, processorsThatOthersHave_areToldOfTheRankThatWaitsMost) {
  std::vector<RankAccount> ranks(3, account_of(40, {}));
  ranks[0].processor_wait = 0.09;
  EXPECT_FALSE(find_verdict(ranks)->shortage.has_value());
  EXPECT_EQ(lines_of(*find_verdict(ranks)).size(), 7u);
  ranks[1].processor_wait = 0.374;
  ranks[2].processor_wait = 0.2;

  const auto verdict = find_verdict(ranks);

  ASSERT_TRUE(verdict->shortage.has_value());
  EXPECT_EQ(verdict->shortage->rank, 1);
  EXPECT_DOUBLE_EQ(verdict->shortage->share, 0.374);
  EXPECT_EQ(lines_of(*verdict).at(1),
            "rank 1 waited for a processor in 37 % of the time that it wanted one: other programs "
            "have them, or there are more threads than processors: `sidestream doctor` says which");
}

TEST(RunVerdictTest, largestShareOfAllRanks_isTheWord) {
  const std::vector<RankAccount> ranks = {account_of(40, {}), account_of(40, {})};

  const auto verdict = find_verdict(ranks);

  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->steps, 40);
  EXPECT_EQ(verdict->bound.word, "compute");
  EXPECT_EQ(verdict->bound.runner_up, "comm");
  EXPECT_NEAR(verdict->bound.compute, 0.5, 1e-3);
  EXPECT_NEAR(verdict->bound.io, 0.1, 1e-3);
  EXPECT_TRUE(verdict->bound.is_sure());
  EXPECT_NEAR(verdict->bound.lead->mean, 0.2, 1e-3);
  EXPECT_FALSE(verdict->straggler.has_value());
  EXPECT_FALSE(verdict->rotating_ns_per_step.has_value());
  EXPECT_NEAR(verdict->ranks.at(1).phase_ms[static_cast<std::size_t>(Phase::kForward)], 5.002,
              1e-9);
  EXPECT_NEAR(verdict->ranks.at(1).other_ms, 1, 1e-9);
}

TEST(RunVerdictTest, belowTwentySteps_saysNothing) {
  EXPECT_FALSE(find_verdict(std::vector<RankAccount>(2, account_of(19, {}))).has_value());
  EXPECT_TRUE(find_verdict(std::vector<RankAccount>(2, account_of(20, {}))).has_value());
  EXPECT_FALSE(find_verdict(std::vector<RankAccount>(2)).has_value());
}

// Computing and collectives take turns in being longer: their means do not say which it is.
TEST(RunVerdictTest, sharesThatTakeTurns_areNotSure) {
  RankAccount account;
  for (int i = 0; i < 40; ++i) {
    const Shape shape =
        i % 2 == 0 ? Shape{.forward_ms = 6, .comm_ms = 2} : Shape{.forward_ms = 2, .comm_ms = 6};
    account.newest.push_back(step_of(i + 2, shape, i));
    account.totals.add(account.newest.back());
  }
  const auto verdict = find_verdict(std::vector<RankAccount>{account});
  EXPECT_FALSE(verdict->bound.is_sure());
  EXPECT_NE(lines_of(*verdict).front().find("bound by computing or by communication: not sure"),
            std::string::npos)
      << lines_of(*verdict).front();
}

TEST(RunVerdictTest, rankWithASlowLoader_isTheStraggler) {
  const std::vector<RankAccount> ranks = {account_of(40, {.comm_ms = 7}),
                                          account_of(40, {.comm_ms = 7}),
                                          account_of(40, {.data_ms = 5, .comm_ms = 3})};

  const auto verdict = find_verdict(ranks);

  ASSERT_TRUE(verdict->straggler.has_value());
  EXPECT_EQ(verdict->straggler->rank, 2);
  EXPECT_EQ(verdict->straggler->phase, "data");
  EXPECT_EQ(verdict->straggler->cost_ns_per_step, 4 * kMs);
  EXPECT_EQ(verdict->straggler->steps_last, 40);
  const std::string first = lines_of(*verdict).front();
  EXPECT_EQ(first.find("straggler: rank 2, in data: costs the others 4.000 ms a step"), 0) << first;
}

TEST(RunVerdictTest, workOutsideEveryPhase_isOther) {
  const std::vector<RankAccount> ranks = {account_of(30, {.comm_ms = 7}),
                                          account_of(30, {.comm_ms = 3, .other_ms = 5})};
  EXPECT_EQ(find_verdict(ranks)->straggler->phase, statistics::kOtherWork);
  EXPECT_EQ(lines_of(*find_verdict(ranks)).front().find("straggler: rank 1, in other work"), 0);
}

TEST(RunVerdictTest, phasesThatExplainItTogether_areComputing) {
  const std::vector<RankAccount> ranks = {
      account_of(30, {.comm_ms = 12}),
      account_of(30, {.forward_ms = 9, .comm_ms = 2, .backward_ms = 4})};
  EXPECT_EQ(find_verdict(ranks)->straggler->phase, statistics::kComputing);
}

TEST(RunVerdictTest, lastRankThatChanges_isNoStraggler) {
  std::vector<RankAccount> ranks(2);
  for (int i = 0; i < 40; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      const Shape shape = i % 2 == rank ? Shape{.forward_ms = 7, .comm_ms = 1} : Shape{};
      RankAccount& account = ranks[static_cast<std::size_t>(rank)];
      account.newest.push_back(step_of(i + 2, shape, i * 100));
      account.totals.add(account.newest.back());
    }
  }
  const auto verdict = find_verdict(ranks);
  EXPECT_FALSE(verdict->straggler.has_value());
  EXPECT_EQ(verdict->rotating_ns_per_step, 2 * kMs);
  EXPECT_EQ(lines_of(*verdict).back().find("no sure straggler: the last rank changes"), 0);
}

// Two steps in which the other rank is very late make the mean unsure, and not the order of ranks.
TEST(RunVerdictTest, lastInMostSteps_isSaidToBe) {
  std::vector<RankAccount> ranks(2);
  for (int i = 0; i < 30; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::int64_t comm_ms = i % 15 == 0 ? (rank == 0 ? 1 : 60) : (rank == 0 ? 9 : 1);
      RankAccount& account = ranks[static_cast<std::size_t>(rank)];
      account.newest.push_back(step_of(i + 2, {.comm_ms = comm_ms}, i * 100));
      account.totals.add(account.newest.back());
    }
  }
  const auto verdict = find_verdict(ranks);
  EXPECT_FALSE(verdict->straggler.has_value());
  EXPECT_FALSE(verdict->rotating_ns_per_step.has_value());
  EXPECT_EQ(lines_of(*verdict).back().find(
                "no sure straggler: rank 1 is last in 28 of 30 steps, at 8.000 ms a step"),
            0)
      << lines_of(*verdict).back();
}

// A rank was stopped for a while: no mean has that, and a line says it.
TEST(RunVerdictTest, stepThatIsFarTooLong_isInNoMean) {
  std::vector<RankAccount> ranks = {account_of(40, {}), account_of(40, {})};
  for (int rank = 0; rank < 2; ++rank) {
    const Shape shape =
        rank == 0 ? Shape{.comm_ms = 2000} : Shape{.forward_ms = 2001, .comm_ms = 4};
    RankAccount& account = ranks[static_cast<std::size_t>(rank)];
    account.newest.push_back(step_of(42, shape, 0));
    account.newest.back().step = 131;
    account.totals.add(account.newest.back());
  }

  const auto verdict = find_verdict(ranks);

  EXPECT_EQ(verdict->newest_steps, 40);
  EXPECT_NEAR(verdict->bound.compute, 0.5, 1e-3);
  EXPECT_NEAR(verdict->bound.lead->mean, 0.2, 1e-3);
  EXPECT_NEAR(verdict->ranks.at(0).step_ms, 10.002, 1e-9);
  EXPECT_FALSE(verdict->straggler.has_value());
  const auto lines = lines_of(*verdict);
  EXPECT_EQ(lines.at(0).find("time of a step, mean of 40: computing 50 %"), 0) << lines.at(0);
  EXPECT_EQ(lines.at(1),
            "in no mean: step 131, which took 2.007 s, 201 times the median: rank 1 in forward");
}

TEST(RunVerdictTest, stepThatWasFarTooLongLongAgo_isInNoMean) {
  std::vector<RankAccount> ranks = {account_of(40, {}), account_of(40, {})};
  for (RankAccount& account : ranks) {
    const StepTimes long_one = step_of(1, {.comm_ms = 4000}, 0), usual = step_of(0, {}, 0);
    account.longest_before = {long_one, usual};
    account.totals.add(long_one);
    account.totals.add(usual);
  }

  const auto verdict = find_verdict(ranks);

  EXPECT_EQ(verdict->newest_steps, 40);
  ASSERT_EQ(verdict->outliers.size(), 1u);
  EXPECT_EQ(verdict->outliers[0].length_ns, 4007 * kMs);
  EXPECT_NEAR(verdict->bound.compute, 0.5, 1e-3);
  EXPECT_EQ(lines_of(*verdict).at(0).find("time of a step, mean of 41: computing 50 %"), 0);
}

// A run in which one of five steps is long is so: none of them stands out, nor do older ones.
TEST(RunVerdictTest, stepsThatAreOftenLong_areInTheMean) {
  std::vector<RankAccount> ranks = {account_of(40, {})};
  for (std::size_t i = 0; i < ranks[0].newest.size(); i += 5) {
    ranks[0].newest[i].window_ns += 2000 * kMs;
    ranks[0].totals.window_ns += 2000 * kMs;
  }
  ranks[0].longest_before = {step_of(1, {.comm_ms = 4000}, 0), step_of(0, {}, 0)};
  for (const StepTimes& step : ranks[0].longest_before) ranks[0].totals.add(step);

  EXPECT_TRUE(find_verdict(ranks)->outliers.empty());
}

// The longest that are kept say nothing of how many more were as long.
TEST(RunVerdictTest, longStepsOfAWholePhaseOfTheRun_areInTheMean) {
  std::vector<RankAccount> ranks = {account_of(40, {})};
  RankAccount& account = ranks[0];
  for (std::size_t i = 0; i < PhaseHistory::kMostLong; ++i) {
    account.longest_before.push_back(step_of(-static_cast<std::int64_t>(i), {.comm_ms = 4000}, 0));
    account.totals.add(account.longest_before.back());
  }
  EXPECT_TRUE(find_verdict(ranks)->outliers.empty());

  account.totals.remove(account.longest_before.back());
  account.longest_before.pop_back();
  const auto verdict = find_verdict(ranks);
  EXPECT_EQ(verdict->outliers.size(), PhaseHistory::kMostLong - 1);
  const auto lines = lines_of(*verdict);
  EXPECT_EQ(lines.at(3).find("in no mean: step"), 0) << lines.at(3);
  EXPECT_EQ(lines.at(4), "in no mean: 12 more, see `verdict` in run.json");
}

TEST(RunVerdictTest, stepsThatEvaluate_areKnownToBeLong) {
  std::vector<RankAccount> ranks = {account_of(40, {})};
  StepTimes& step = ranks[0].newest[20];
  ranks[0].totals.remove(step);
  step.window_ns += 2000 * kMs;
  step.phase_ns[static_cast<std::size_t>(Phase::kEval)] = 2000 * kMs;
  ranks[0].totals.add(step);
  EXPECT_TRUE(find_verdict(ranks)->outliers.empty());
}

// One rank could not account for a step: that one is left out, and the others stay in line.
TEST(RunVerdictTest, stepsThatARankLacks_areLeftOut) {
  std::vector<RankAccount> ranks = {account_of(40, {}), account_of(40, {})};
  ranks[1].newest.erase(ranks[1].newest.begin() + 7);
  EXPECT_EQ(find_verdict(ranks)->newest_steps, 39);
}

TEST(RunVerdictTest, stepsThatAreNotCounted_areSaid) {
  std::vector<RankAccount> ranks = {account_of(40, {}), account_of(40, {})};
  ranks[1].totals.uncounted_steps = 3;
  const auto lines = lines_of(*find_verdict(ranks));
  EXPECT_EQ(lines.at(1).find("3 steps are left out"), 0) << lines.at(1);

  RankAccount none;
  none.totals.uncounted_steps = 40;
  const auto verdict = find_verdict(std::vector<RankAccount>{none});
  ASSERT_TRUE(verdict.has_value());
  EXPECT_FALSE(verdict->is_known());
  EXPECT_EQ(lines_of(*verdict).size(), 1u);
  EXPECT_EQ(lines_of(*verdict)[0].find("no verdict: 40 steps"), 0) << lines_of(*verdict)[0];
}

TEST(RunVerdictTest, manyRanks_showThoseThatWaitLeastAndMost) {
  std::vector<RankAccount> ranks(64, account_of(20, {}));
  ranks[17] = account_of(20, {.data_ms = 3, .comm_ms = 1});
  const auto lines = lines_of(*find_verdict(ranks));
  EXPECT_EQ(lines.size(), 1U + 2U + 16U + 1U);
  EXPECT_NE(lines[4].find("    17  "), std::string::npos) << lines[4];
}

TEST(PhaseHistoryTest, keepsTheLongestOfThoseBefore) {
  PhaseHistory history;
  const auto size = static_cast<std::int64_t>(PhaseHistory::kMostSteps);
  for (std::int64_t i = 1; i <= size; ++i) history.add({.number = i, .window_ns = i % 50});
  EXPECT_TRUE(history.longest_before().empty());
  for (std::int64_t i = 1; i <= size; ++i) history.add({.number = size + i, .window_ns = 1000});

  std::vector<std::int64_t> lengths;
  for (const StepTimes& step : history.longest_before()) lengths.push_back(step.window_ns);
  std::sort(lengths.begin(), lengths.end());
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{46, 47, 47, 47, 47, 47, 48, 48, 48, 48, 48, 49, 49,
                                                49, 49, 49}));
}

// Where few of the newest are told, the others are among those before.
TEST(PhaseHistoryTest, longestBeforeAFewOfTheNewest) {
  PhaseHistory history;
  for (std::int64_t i = 1; i <= 100; ++i)
    history.add({.number = i, .window_ns = i == 40 ? 5000 : i == 95 ? 9000 : 10});
  const std::vector<StepTimes> longest = history.longest_before(10);
  ASSERT_EQ(longest.size(), PhaseHistory::kMostLong);
  EXPECT_EQ(longest[0].number, 40);
  EXPECT_EQ(longest[1].window_ns, 10);
  EXPECT_TRUE(history.longest_before().empty());
}

TEST(PhaseHistoryTest, keepsTheNewest) {
  PhaseHistory history;
  EXPECT_TRUE(history.newest().empty());
  for (int i = 1; i <= 300; ++i) history.add({.number = i});
  EXPECT_EQ(history.newest().size(), PhaseHistory::kMostSteps);
  EXPECT_EQ(history.newest().front().number, 300 - 255);
  EXPECT_EQ(history.newest(3).front().number, 298);
  EXPECT_EQ(history.newest(3).back().number, 300);
}

}  // namespace
}  // namespace sidestream::record
