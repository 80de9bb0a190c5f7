// Which flags a dry run names where a plan does not fit.
#include "launch/assembly/memory_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::launch {
namespace {

using model::Recompute;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kFixed = 1 << 30;
constexpr int kRanks = 2;

TrainOptions options_of(std::int64_t chunks, Recompute level = Recompute::kNone) {
  TrainOptions options;
  options.model.config = model::preset("gpt2-124m");
  options.model.config.loss_chunks = chunks;
  options.model.config.recompute = level;
  options.data.batch_size_per_rank = 8;
  return options;
}

std::int64_t needed(const TrainOptions& options) {
  return kRanks * (kFixed + static_cast<std::int64_t>(activations_of(options).peak()));
}

std::string advice(const TrainOptions& options, std::int64_t usable_bytes) {
  return memory_advice(options,
                       {.ranks = kRanks, .usable_bytes = usable_bytes, .fixed_bytes = kFixed});
}

TEST(MemoryAdviceTest, what_fits_needs_none) {
  const TrainOptions options = options_of(0);

  EXPECT_EQ(advice(options, needed(options)), "");
  EXPECT_NE(advice(options, needed(options) - 1), "");
  EXPECT_EQ(memory_advice(options, {.ranks = kRanks, .fixed_bytes = kFixed}), "");
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
  EXPECT_THAT(advice(options_of(0), 0), HasSubstr("--recompute blocks leaves about"));
  EXPECT_THAT(advice(options_of(0), 0), HasSubstr("--batch-size-per-rank"));
  EXPECT_THAT(advice(options_of(0, Recompute::kBlocks), 0), Not(HasSubstr("leaves about")));
}

TEST(MemoryAdviceTest, a_start_that_takes_more_than_training_is_counted) {
  const TrainOptions options = options_of(0);
  const std::int64_t start = needed(options) / kRanks + 1;
  const HostMemory host{.ranks = kRanks,
                        .usable_bytes = needed(options),
                        .fixed_bytes = kFixed,
                        .start_bytes = start};

  EXPECT_THAT(memory_advice(options, host), HasSubstr("they need about"));
}

constexpr std::int64_t kOffloaded = 700 << 20;

std::string gpu_advice(const TrainOptions& options, std::int64_t usable_bytes) {
  return memory_advice(options, {.usable_bytes = usable_bytes,
                                 .fixed_bytes = kFixed,
                                 .memory = MemoryOf::kGpu,
                                 .offloaded_bytes = kOffloaded});
}

TEST(MemoryAdviceTest, what_goes_to_the_host_of_a_gpu_comes_after_the_levels) {
  TrainOptions deep = options_of(0, Recompute::kBlocks);
  deep.model.config.layers = 48;
  TrainOptions moved = deep;
  moved.model.config.residuals = model::ResidualPlace::kHost;
  const auto needs = [](const TrainOptions& options) {
    return kFixed + static_cast<std::int64_t>(activations_of(options).peak());
  };
  ASSERT_LT(needs(moved), needs(deep));
  TrainOptions none = deep;
  none.model.config.recompute = Recompute::kNone;

  EXPECT_THAT(gpu_advice(none, needs(deep)), HasSubstr("this GPU has"));
  EXPECT_THAT(gpu_advice(none, needs(deep)), HasSubstr(": --recompute blocks makes it about"));
  EXPECT_THAT(gpu_advice(none, needs(moved)),
              HasSubstr(": --recompute blocks --offload residuals makes it about"));
  EXPECT_THAT(gpu_advice(deep, needs(moved) - kOffloaded),
              HasSubstr(": --offload residuals,optimizer makes it about"));
  EXPECT_THAT(gpu_advice(deep, 0), HasSubstr("--offload residuals,optimizer leaves about"));
  EXPECT_THAT(advice(deep, 0), Not(HasSubstr("--offload")));
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
  EXPECT_THAT(gpu_advice(graph, 0), HasSubstr("optimizer --cuda-graph off leaves about"));
}

TEST(MemoryAdviceTest, another_family_has_chunks_alone) {
  TrainOptions options = options_of(1);
  options.model.config = model::preset("mlp");
  options.model.config.loss_chunks = 1;

  EXPECT_THAT(advice(options, 0), HasSubstr("--loss-chunks auto leaves about"));
  EXPECT_THAT(advice(options, 0), Not(HasSubstr("--recompute")));
}

}  // namespace
}  // namespace sidestream::launch
