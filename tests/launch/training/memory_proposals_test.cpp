// Flags that take less of the optimizer's state, or of everything, with real plans.
#include "launch/assembly/memory_proposals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::launch {
namespace {

using model::Recompute;
using parallel::RanksShare;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Nothing but state can be made smaller, and what --precision does.
TrainOptions options_of() {
  TrainOptions options;
  options.model.config = model::preset("gpt2-124m");
  options.model.config.loss_chunks = 0;
  options.model.config.recompute = Recompute::kBlocks;
  return options;
}

std::vector<std::string> proposed(const TrainOptions& options, int ranks,
                                  RanksShare share = RanksShare::kNothing, MemoryRoom room = {}) {
  const RankPlanner planner(options, {.ranks = ranks, .ranks_on_host = ranks, .share = share});
  room.ranks = room.ranks_on_host = ranks;
  std::vector<std::string> flags;
  for (const MemoryProposal& one : memory_proposals(
           options, [&](const TrainOptions& other) { return planner.plan(other); }, room))
    flags.push_back(one.flags);
  return flags;
}

TEST(MemoryProposalsTest, what_rounds_comes_last) {
  EXPECT_THAT(
      proposed(options_of(), 1),
      ElementsAre("--optimizer-state-dtype bf16", "--optimizer-state-dtype bf16 --precision bf16"));
}

TEST(MemoryProposalsTest, slices_are_for_several_ranks_that_share_no_copy) {
  EXPECT_THAT(proposed(options_of(), 1), Each(Not(HasSubstr("--zero"))));
  EXPECT_EQ(proposed(options_of(), 4).front(), "--zero 1");
  EXPECT_THAT(proposed(options_of(), 4, RanksShare::kMemory), Each(Not(HasSubstr("--zero"))))
      << "they have one copy already";

  TrainOptions apart = options_of();
  apart.parallel.state_sharing = parallel::StateSharing::kOff;
  EXPECT_EQ(proposed(apart, 4, RanksShare::kMemory).front(), "--zero 1");
}

TEST(MemoryProposalsTest, slices_are_not_for_plain_operators) {
  TrainOptions options = options_of();
  options.parallel.optimizer.kernel = parallel::OptimizerKernel::kUnfused;

  EXPECT_THAT(proposed(options, 4), Each(Not(HasSubstr("--zero"))));
}

TEST(MemoryProposalsTest, slices_come_before_levels) {
  TrainOptions options = options_of();
  options.model.config.recompute = Recompute::kNone;

  const std::vector<std::string> all = proposed(options, 4);

  EXPECT_EQ(all.front(), "--zero 1");
  EXPECT_THAT(all, Contains("--zero 1 --recompute activations"));
}

TEST(MemoryProposalsTest, what_is_narrow_already_is_not_proposed) {
  TrainOptions options = options_of();
  options.parallel.optimizer.state_dtype = core::DType::kBFloat16;
  EXPECT_THAT(proposed(options, 1), ElementsAre("--precision bf16"));

  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    options.precision = precision;
    EXPECT_THAT(proposed(options, 1), IsEmpty());
  }
}

TEST(MemoryProposalsTest, an_optimizer_without_state_has_none_to_narrow) {
  TrainOptions options = options_of();
  options.parallel.optimizer.algorithm = parallel::OptimizerAlgorithm::kSgd;
  options.parallel.optimizer.momentum = 0;

  EXPECT_THAT(proposed(options, 1), Each(Not(HasSubstr("--optimizer-state-dtype"))));
}

TEST(MemoryProposalsTest, half_of_the_state_may_find_room_on_the_host_of_a_gpu) {
  TrainOptions options = options_of();
  options.device = Device::kCuda;
  options.model.config.residuals = model::ResidualPlace::kHost;
  TrainOptions moved = options;
  moved.parallel.optimizer.state_residence = parallel::StateResidence::kHost;
  moved.parallel.optimizer.state_dtype = core::DType::kBFloat16;
  const RankPlan plan = RankPlanner(moved, {}).plan(moved);
  MemoryRoom room{.memory = MemoryOf::kGpu,
                  .host_usable_bytes = static_cast<std::int64_t>(plan.pinned_bytes())};

  EXPECT_THAT(proposed(options, 1, RanksShare::kNothing, room),
              Contains("--offload residuals,optimizer --optimizer-state-dtype bf16"));
  *room.host_usable_bytes -= 1;
  EXPECT_THAT(proposed(options, 1, RanksShare::kNothing, room), Each(Not(HasSubstr("optimizer "))));
}

}  // namespace
}  // namespace sidestream::launch
