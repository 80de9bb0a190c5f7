// The budget over random traces against counting nanosecond by nanosecond.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "profiling/analysis/idle_causes.hpp"
#include "profiling/analysis/step_budget.hpp"

namespace sidestream::analysis {
namespace {

constexpr std::int64_t kEnd = 400;

class RandomTrace {
 public:
  explicit RandomTrace(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }

  // A few long ones, or many short ones.
  std::vector<Interval> intervals() {
    const bool many = below(3) == 0;
    std::vector<Interval> list(static_cast<std::size_t>(below(many ? 200 : 30)));
    for (Interval& one : list) {
      one.start_ns = below(kEnd);
      one.end_ns = one.start_ns + below(many ? 4 : 25);
    }
    return list;
  }

  LaunchGaps launches(const IntervalSet& busy) {
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < busy.intervals().size(); ++i)
      times.push_back(below(4) == 0 ? LaunchGaps::kNotKnown : below(kEnd));
    return {busy, std::move(times)};
  }

  Interval window() {
    const std::int64_t start = below(kEnd);
    return {start, start + below(kEnd)};
  }

 private:
  std::mt19937_64 random_;
};

using Moments = std::vector<bool>;

Moments moments_of(const std::vector<Interval>& intervals) {
  Moments moments(2 * kEnd, false);
  for (const Interval& one : intervals) {
    for (std::int64_t t = one.start_ns; t < one.end_ns; ++t)
      moments[static_cast<std::size_t>(t)] = true;
  }
  return moments;
}

TEST(StepBudgetTest, closes_and_agrees_with_counting_over_random_traces) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomTrace random(seed);
    const auto compute = random.intervals(), communication = random.intervals(),
               copies = random.intervals();
    const Interval window = random.window();
    const BudgetSets sets({.where = Where::kDevice,
                           .compute = IntervalSet(compute),
                           .communication = IntervalSet(communication),
                           .copies = IntervalSet(copies),
                           .window = {}});
    const StepBudget budget = sets.budget_of(window);

    StepBudget counted;
    const Moments c = moments_of(compute), m = moments_of(communication), p = moments_of(copies);
    for (auto t = static_cast<std::size_t>(window.start_ns);
         t < static_cast<std::size_t>(window.end_ns); ++t) {
      counted.compute_ns += c[t];
      counted.overlapped_comm_ns += c[t] && m[t];
      counted.exposed_comm_ns += m[t] && !c[t];
      counted.exposed_memcpy_ns += p[t] && !c[t] && !m[t];
      counted.idle_ns += !p[t] && !c[t] && !m[t];
    }
    ASSERT_EQ(budget.compute_ns, counted.compute_ns) << seed;
    ASSERT_EQ(budget.overlapped_comm_ns, counted.overlapped_comm_ns) << seed;
    ASSERT_EQ(budget.exposed_comm_ns, counted.exposed_comm_ns) << seed;
    ASSERT_EQ(budget.exposed_memcpy_ns, counted.exposed_memcpy_ns) << seed;
    ASSERT_EQ(budget.idle_ns, counted.idle_ns) << seed;
    ASSERT_EQ(
        budget.compute_ns + budget.exposed_comm_ns + budget.exposed_memcpy_ns + budget.idle_ns,
        window.length_ns());
  }
}

TEST(IdleCausesTest, add_up_to_the_idle_time_over_random_traces) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    RandomTrace random(seed);
    const IntervalSet busy(random.intervals());
    const LaunchGaps gaps = random.launches(busy);
    const Interval window = random.window();
    const std::int64_t idle_ns = window.length_ns() - busy.length_within_ns(window);
    const HostActivity host{.data = IntervalSet(random.intervals()),
                            .communication = IntervalSet(random.intervals()),
                            .locks = IntervalSet(random.intervals()),
                            .sync = IntervalSet(random.intervals()),
                            .active = IntervalSet(random.intervals()),
                            .after_sync = IntervalSet(random.intervals())};
    const IdleCauses causes = idle_causes(window, busy, host, gaps);
    ASSERT_EQ(causes.sum_ns(), idle_ns) << seed;
    ASSERT_EQ(idle_causes(window, busy, host, gaps, 1), causes) << seed;
    ASSERT_EQ(idle_causes(window, busy, host, gaps, 3), causes) << seed;
  }
}

}  // namespace
}  // namespace sidestream::analysis
