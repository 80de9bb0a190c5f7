// Which flags a run names where its plan does not fit.
#include "launch/assembly/memory_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::launch {
namespace {

using model::Recompute;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kState = 1 << 30, kOffloaded = 700 << 20;
constexpr int kTwoRanks = 2;

TrainOptions options_of(std::int64_t chunks, Recompute level = Recompute::kNone) {
  TrainOptions options;
  options.model.config = model::preset("gpt2-124m");
  options.model.config.loss_chunks = chunks;
  options.model.config.recompute = level;
  options.data.batch_size_per_rank = 8;
  return options;
}

// Real activations beside a state that --offload optimizer alone makes smaller.
RankPlan plan_of(const TrainOptions& options) {
  const bool moved = options.parallel.optimizer.state_residence == parallel::StateResidence::kHost;
  RankPlan plan{.activations = activations_of(options)};
  plan.state.parameter_bytes = moved ? kState - kOffloaded : kState;
  plan.state.host_state_bytes = moved ? kOffloaded : 0;
  return plan;
}

std::int64_t needed(const TrainOptions& options) {
  return kTwoRanks * static_cast<std::int64_t>(kState + activations_of(options).peak());
}

std::string advice(const TrainOptions& options, std::optional<std::int64_t> usable_bytes) {
  return memory_advice(
      options, plan_of,
      {.ranks = kTwoRanks, .ranks_on_host = kTwoRanks, .usable_bytes = usable_bytes});
}

TEST(MemoryAdviceTest, what_fits_needs_none) {
  const TrainOptions options = options_of(0);

  EXPECT_EQ(advice(options, needed(options)), "");
  EXPECT_NE(advice(options, needed(options) - 1), "");
  EXPECT_EQ(advice(options, std::nullopt), "");
}

TEST(MemoryAdviceTest, the_cheapest_level_that_fits_is_named) {
  for (const auto& [level, name] : {std::pair{Recompute::kActivations, "--recompute activations "},
                                    std::pair{Recompute::kMlp, "--recompute mlp "},
                                    std::pair{Recompute::kAttention, "--recompute attention "},
                                    std::pair{Recompute::kBlocks, "--recompute blocks "}}) {
    const std::string text = advice(options_of(0), needed(options_of(0, level)));

    EXPECT_THAT(text, HasSubstr(std::string(": ") + name + "makes it about"));
    EXPECT_THAT(text, Not(HasSubstr("--loss-chunks")));
  }
}

TEST(MemoryAdviceTest, chunks_come_before_levels_and_stay_with_them) {
  TrainOptions whole = options_of(1);
  whole.model.config.fused_ops = model::FusedOps::kOff;
  TrainOptions chunked = whole;
  chunked.model.config.loss_chunks = 0;
  ASSERT_LT(needed(chunked), needed(whole));

  EXPECT_THAT(advice(whole, needed(chunked)), HasSubstr(": --loss-chunks auto makes it about"));
  EXPECT_THAT(advice(whole, needed(chunked) - 1),
              HasSubstr(": --loss-chunks auto --recompute act"));
}

TEST(MemoryAdviceTest, what_does_not_help_is_said) {
  TrainOptions least = options_of(0, Recompute::kBlocks);
  least.precision = Precision::kBf16;

  EXPECT_THAT(advice(options_of(0), 0),
              HasSubstr("--recompute blocks --precision bf16 still needs about"));
  EXPECT_THAT(advice(options_of(0), 0), HasSubstr("--batch-size-per-rank"));
  EXPECT_THAT(advice(least, 0), Not(HasSubstr("still needs about")));
}

TEST(MemoryAdviceTest, a_start_that_takes_more_than_training_is_counted) {
  const TrainOptions options = options_of(0);
  const auto plan_with_start = [](const TrainOptions& other) {
    RankPlan plan = plan_of(other);
    plan.state.start_bytes = plan_of(options_of(0)).training_bytes() + 1;
    return plan;
  };

  EXPECT_THAT(memory_advice(options, plan_with_start,
                            {.ranks_on_host = kTwoRanks, .usable_bytes = needed(options)}),
              HasSubstr("they need about"));
}

TEST(MemoryAdviceTest, another_family_has_no_levels) {
  TrainOptions options = options_of(1);
  options.model.config = model::preset("mlp");
  options.model.config.vocab_size = options.model.config.padded_vocab_size = 50257;
  options.model.config.loss_chunks = 1;

  EXPECT_THAT(advice(options, 0), HasSubstr(": --loss-chunks auto"));
  EXPECT_THAT(advice(options, 0), Not(HasSubstr("--recompute")));
}

std::string gpu_advice(const TrainOptions& options, std::int64_t usable_bytes,
                       std::optional<std::int64_t> host_usable_bytes = std::nullopt) {
  return memory_advice(options, plan_of,
                       {.memory = MemoryOf::kGpu,
                        .usable_bytes = usable_bytes,
                        .host_usable_bytes = host_usable_bytes});
}

TrainOptions deep_options() {
  TrainOptions deep = options_of(0, Recompute::kBlocks);
  deep.model.config.layers = 48;
  return deep;
}

TrainOptions with_residuals_moved(TrainOptions options) {
  options.model.config.residuals = model::ResidualPlace::kHost;
  return options;
}

std::int64_t needed_on_gpu(const TrainOptions& options) { return needed(options) / kTwoRanks; }

TEST(MemoryAdviceTest, what_goes_to_the_host_of_a_gpu_comes_after_the_levels) {
  const TrainOptions deep = deep_options(), moved = with_residuals_moved(deep);
  ASSERT_LT(needed_on_gpu(moved), needed_on_gpu(deep));
  TrainOptions none = deep;
  none.model.config.recompute = Recompute::kNone;

  EXPECT_THAT(gpu_advice(none, needed_on_gpu(deep)), HasSubstr("this GPU has"));
  EXPECT_THAT(gpu_advice(none, needed_on_gpu(deep)),
              HasSubstr(": --recompute blocks makes it about"));
  EXPECT_THAT(gpu_advice(none, needed_on_gpu(moved)),
              HasSubstr(": --recompute blocks --offload residuals makes it about"));
  EXPECT_THAT(gpu_advice(deep, needed_on_gpu(moved) - static_cast<std::int64_t>(kOffloaded)),
              HasSubstr(": --offload residuals,optimizer makes it about"));
  EXPECT_THAT(gpu_advice(deep, 0),
              HasSubstr("--offload residuals,optimizer --precision bf16 still needs about"));
  EXPECT_THAT(advice(deep, 0), Not(HasSubstr("--offload")));
}

TEST(MemoryAdviceTest, what_the_host_of_a_gpu_has_no_room_for_is_not_proposed) {
  const TrainOptions deep = deep_options();
  const auto residuals = static_cast<std::int64_t>(activations_of(with_residuals_moved(deep)).host);
  const auto optimizer = static_cast<std::int64_t>(kOffloaded);

  EXPECT_THAT(gpu_advice(deep, 0, 0), Not(HasSubstr("--offload")));
  EXPECT_THAT(gpu_advice(deep, 0, residuals), HasSubstr(": --offload residuals --precision"));
  EXPECT_THAT(gpu_advice(deep, 0, residuals + optimizer - 1), Not(HasSubstr("optimizer --")));
  EXPECT_THAT(gpu_advice(deep, 0, residuals + optimizer),
              HasSubstr(": --offload residuals,optimizer --precision"));
}

TEST(MemoryAdviceTest, what_a_graph_of_the_step_cannot_hold_leaves_it_out) {
  TrainOptions graph = options_of(0);
  graph.cuda_graph = true;
  graph.model.config.dropout = 0;
  TrainOptions recomputed = graph;
  recomputed.model.config.recompute = Recompute::kBlocks;
  // With draws, attention keeps so much that it is what helps.
  TrainOptions draws = graph;
  draws.model.config.dropout = 0.1;
  TrainOptions redrawn = draws;
  redrawn.model.config.recompute = Recompute::kAttention;

  EXPECT_THAT(advice(graph, needed(recomputed)), HasSubstr(": --recompute blocks makes it about"));
  EXPECT_THAT(advice(draws, needed(redrawn)),
              HasSubstr(": --recompute attention --cuda-graph off makes it about"));
  EXPECT_THAT(gpu_advice(graph, 0), HasSubstr(" --cuda-graph off still needs about"));
}

}  // namespace
}  // namespace sidestream::launch
