// What is said of ranks on a processor before they train, on hosts that are made up.
#include "launch/assembly/memory_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "launch/reporting/memory_peak.hpp"

namespace sidestream::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr int kRanks = 2;

struct MemoryCheckTest : testing::Test {
  static TrainOptions options_of() {
    TrainOptions options;
    options.device = Device::kCpu;
    options.model.config = model::preset("gpt2-124m");
    return options;
  }

  std::string check(const core::HostMemory& memory) const {
    return check_host_memory(options, planner, memory);
  }
  std::string refusal(const core::HostMemory& memory) const {
    try {
      check(memory);
    } catch (const core::ConfigError& error) {
      return error.what();
    }
    return "";
  }

  TrainOptions options = options_of();
  RankPlanner planner{options, {.ranks = kRanks, .ranks_on_host = kRanks}};
  std::int64_t needed = needed_bytes(planner.plan(options), {.ranks_on_host = kRanks});
};

// The largest preset has 6 GiB of weights; what a model has touched stays with the process.
TEST_F(MemoryCheckTest, planning_itself_takes_no_memory) {
  TrainOptions largest = options;
  largest.model.config = model::preset("gpt2-1558m");
  const std::int64_t before = most_resident_bytes().value();

  const RankPlan plan = RankPlanner(largest, {}).plan(largest);

  EXPECT_GT(plan.state.parameter_bytes, std::size_t{5} << 30);
  EXPECT_LT(most_resident_bytes().value() - before, kGiB / 8);
}

TEST_F(MemoryCheckTest, what_fits_is_not_spoken_of) {
  EXPECT_EQ(check({.total_bytes = 64 * kGiB, .available_bytes = needed}), "");
  EXPECT_EQ(check({}), "") << "what there is, is not known";
}

TEST_F(MemoryCheckTest, what_is_not_free_is_a_warning_with_need_have_and_flag) {
  const std::string text = check({.total_bytes = 64 * kGiB, .available_bytes = needed - kGiB});

  EXPECT_THAT(text, AllOf(HasSubstr(" GiB free for 2 rank(s), and they need about "),
                          HasSubstr("--recompute"), HasSubstr("makes it about")));
}

TEST_F(MemoryCheckTest, what_the_control_group_has_left_counts) {
  core::HostMemory memory{.total_bytes = 64 * kGiB, .available_bytes = 60 * kGiB};
  memory.limit_bytes = needed + kGiB;
  EXPECT_EQ(check(memory), "");

  memory.limit_used_bytes = 2 * kGiB;

  EXPECT_NE(check(memory), "");
}

TEST_F(MemoryCheckTest, what_can_never_be_had_is_refused) {
  const core::HostMemory small{.total_bytes = 2 * kGiB, .available_bytes = kGiB};
  core::HostMemory swapping = small;
  swapping.swap_bytes = needed;
  core::HostMemory limited{.total_bytes = 64 * kGiB, .available_bytes = 60 * kGiB};
  limited.limit_bytes = 2 * kGiB;

  EXPECT_THAT(refusal(small), AllOf(HasSubstr("2 rank(s) need at least "),
                                    HasSubstr("this machine has 2.0 GiB in all, swap included"),
                                    HasSubstr("--recompute")));
  EXPECT_EQ(refusal(limited), refusal(small));
  EXPECT_EQ(refusal(swapping), "");
  EXPECT_NE(check(swapping), "");
}

}  // namespace
}  // namespace sidestream::launch
