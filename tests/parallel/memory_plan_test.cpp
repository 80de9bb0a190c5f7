#include "parallel/memory_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

using ::testing::HasSubstr;

const std::vector<ParameterShape> kShapes = {{.name = "embedding", .sizes = {1000, 16}},
                                             {.name = "weight", .sizes = {16, 16}},
                                             {.name = "bias", .sizes = {16}}};
constexpr std::size_t kElements = 16000 + 256 + 16;

TEST(MemoryPlanTest, planMemory_fp32_countsWeightsGradientsAndTwoMoments) {
  const MemoryPlan plan = plan_memory(kShapes, {.state_sharing = StateSharing::kOff}, 2);

  EXPECT_EQ(plan.parameter_bytes, kElements * 4);
  EXPECT_EQ(plan.master_bytes, 0u);
  EXPECT_EQ(plan.gradient_bytes, kElements * 4);
  EXPECT_EQ(plan.moment_bytes, kElements * 8);
  EXPECT_EQ(plan.total_bytes(), kElements * 16);
}

TEST(MemoryPlanTest, planMemory_bf16WithFp32Sums_addsMasterWeights) {
  const MemoryPlan plan = plan_memory(kShapes,
                                      {.parameter_dtype = core::DType::kBFloat16,
                                       .reduce_dtype = core::DType::kFloat32,
                                       .state_sharing = StateSharing::kOff},
                                      2);

  EXPECT_EQ(plan.parameter_bytes, (kElements + 16) * 2);  // the bias is padded from 32 to 64 bytes
  EXPECT_EQ(plan.master_bytes, kElements * 4);
  EXPECT_EQ(plan.gradient_bytes, kElements * 4);
}

TEST(MemoryPlanTest, planMemory_sharedState_countsThisRanksPart) {
  const MemoryPlan plan = plan_memory(kShapes, {.state_sharing = StateSharing::kAuto}, 4);

  EXPECT_TRUE(plan.shares_state);
  EXPECT_EQ(plan.parameter_bytes, kElements);
  EXPECT_EQ(plan.gradient_bytes, kElements * 4);
  EXPECT_EQ(plan.moment_bytes, kElements * 2);
}

TEST(MemoryPlanTest, planMemory_slicedState_countsSlicesOfMastersAndMoments) {
  const std::vector<ParameterShape> shapes = {{.name = "weight", .sizes = {1000, 1000}}};
  const MemoryPlan plan = plan_memory(
      shapes, {.parameter_dtype = core::DType::kBFloat16, .state_sharing = StateSharing::kSharded},
      4);

  EXPECT_TRUE(plan.shards_state);
  EXPECT_FALSE(plan.shares_state);
  const std::size_t elements = plan.buckets.total_elements;
  EXPECT_GE(elements, 1000000u);
  EXPECT_LT(elements, 1000000u + 4 * kSliceBlock);
  EXPECT_EQ(plan.parameter_bytes, plan.buckets.capacity_elements * 2);
  EXPECT_EQ(plan.gradient_bytes, plan.buckets.capacity_elements * 2);
  EXPECT_EQ(plan.master_bytes, elements / 4 * 4);
  EXPECT_EQ(plan.moment_bytes, elements / 4 * 8);
}

// bf16 on eight ranks: 4 bytes an element of the module, 2 of the flat weights, 4/8 of the masters.
TEST(MemoryPlanTest, planMemory_slicedState_startsWithSlices) {
  constexpr std::size_t kLarge = 100'000'000;
  const std::vector<ParameterShape> shapes = {{.name = "weight", .sizes = {10'000, 10'000}}};
  const auto plan_of = [&](core::DType parameters, core::DType gradients, int ranks) {
    return plan_memory(shapes,
                       {.parameter_dtype = parameters,
                        .reduce_dtype = gradients,
                        .state_sharing = StateSharing::kSharded},
                       ranks);
  };
  using core::DType;
  const auto near = [](double bytes_per_element) {
    return ::testing::DoubleNear(bytes_per_element * kLarge, 0.05 * kLarge);
  };
  const auto start = [](const MemoryPlan& plan) { return static_cast<double>(plan.start_bytes); };

  EXPECT_THAT(start(plan_of(DType::kBFloat16, DType::kBFloat16, 8)), near(6.5));
  EXPECT_THAT(start(plan_of(DType::kBFloat16, DType::kBFloat16, 2)), near(2 + 2 + 2 + 4 + 2))
      << "the slices of one state a second time";
  EXPECT_THAT(start(plan_of(DType::kFloat32, DType::kFloat32, 8)), near(4 + 4 + 1 + 0.5));
  EXPECT_THAT(start(plan_of(DType::kFloat32, DType::kBFloat16, 8)), near(4 + 2 + 1 + 4))
      << "gradients in bf16 have no room for the weights";
}

TEST(MemoryPlanTest, planMemory_narrowReduction_keepsWhatMicroStepsAddTo) {
  const std::vector<ParameterShape> shapes = {{.name = "weight", .sizes = {1000, 1000}}};
  const auto plan_of = [&](core::DType reduce, int micro_steps) {
    return plan_memory(shapes, {.reduce_dtype = reduce, .grad_accumulation = micro_steps}, 1);
  };

  EXPECT_EQ(plan_of(core::DType::kBFloat16, 1).own_gradient_bytes(), 2'000'000u);
  EXPECT_EQ(plan_of(core::DType::kBFloat16, 2).own_gradient_bytes(), 6'000'000u);
  EXPECT_EQ(plan_of(core::DType::kFloat32, 2).own_gradient_bytes(), 4'000'000u);
}

TEST(MemoryPlanTest, planMemory_manyMicroStepsIn16Bits_countsWideGradients) {
  const std::vector<ParameterShape> shapes = {{.name = "weight", .sizes = {1000, 1000}}};
  for (const core::DType narrow : {core::DType::kBFloat16, core::DType::kFloat16}) {
    const auto gradient_bytes = [&](int micro_steps, std::optional<core::DType> reduce) {
      return plan_memory(shapes,
                         {.parameter_dtype = narrow,
                          .reduce_dtype = reduce,
                          .grad_accumulation = micro_steps},
                         1)
          .own_gradient_bytes();
    };

    EXPECT_EQ(gradient_bytes(kMostNarrowMicroSteps, {}), 2'000'000u);
    EXPECT_EQ(gradient_bytes(kMostNarrowMicroSteps + 1, {}), 4'000'000u);
    EXPECT_EQ(gradient_bytes(kMostNarrowMicroSteps + 1, narrow), 2'000'000u) << "who asks gets it";
  }
  EXPECT_EQ(DataParallelConfig{.grad_accumulation = 1000}.gradient_dtype(), core::DType::kFloat32);
}

TEST(MemoryPlanTest, planMemory_slicedState_countsItsPadding) {
  const std::vector<ParameterShape> shapes = {{.name = "weight", .sizes = {1000, 1000}}};
  const auto padding = [&](int ranks, double bucket_mb) {
    return plan_memory(shapes, {.bucket_mb = bucket_mb, .state_sharing = StateSharing::kSharded},
                       ranks)
        .padding_bytes;
  };

  EXPECT_EQ(plan_memory(shapes, {.state_sharing = StateSharing::kOff}, 8).padding_bytes, 0u);
  const std::size_t blocks = (1'000'000 + kSliceBlock - 1) / kSliceBlock;  // 62: 64 on 8 ranks
  const std::size_t unused = (64 * kSliceBlock - 1'000'000) * sizeof(float);
  ASSERT_EQ(blocks, 62u);
  EXPECT_GE(padding(8, 25), unused * 2 + unused * 2 / 8) << "weights, gradients, two moments";
}

TEST(SettledSharingTest, wishes_becomeWhatRanksCanDo) {
  const auto settled = [](StateSharing wish, OptimizerKernel kernel, RanksShare ranks) {
    return settled_sharing({.state_sharing = wish, .optimizer = {.kernel = kernel}}, ranks);
  };
  constexpr auto kFused = OptimizerKernel::kFused, kPlain = OptimizerKernel::kUnfused;

  EXPECT_EQ(settled(StateSharing::kAuto, kFused, RanksShare::kMemory), StateSharing::kOn);
  EXPECT_EQ(settled(StateSharing::kAuto, kPlain, RanksShare::kMemory), StateSharing::kOff);
  EXPECT_EQ(settled(StateSharing::kAuto, kFused, RanksShare::kNothing), StateSharing::kOff);
  EXPECT_EQ(settled(StateSharing::kOn, kFused, RanksShare::kMemory), StateSharing::kOn);
  EXPECT_EQ(settled(StateSharing::kOn, kFused, RanksShare::kNothing), StateSharing::kSharded);
  for (const RanksShare ranks : {RanksShare::kMemory, RanksShare::kNothing}) {
    EXPECT_EQ(settled(StateSharing::kOff, kFused, ranks), StateSharing::kOff);
    EXPECT_EQ(settled(StateSharing::kSharded, kFused, ranks), StateSharing::kSharded);
  }
}

TEST(MemoryPlanTest, planMemory_stateOnTheHost_leavesTwoBuffersOnTheDevice) {
  for (const core::DType weights : {core::DType::kFloat32, core::DType::kBFloat16}) {
    DataParallelConfig config{.parameter_dtype = weights, .state_sharing = StateSharing::kOff};
    const MemoryPlan there = plan_memory(kShapes, config, 2);
    config.optimizer.state_residence = StateResidence::kHost;

    const MemoryPlan plan = plan_memory(kShapes, config, 2);

    EXPECT_EQ(plan.parameter_bytes, there.parameter_bytes);
    EXPECT_EQ(plan.gradient_bytes, there.gradient_bytes);
    EXPECT_EQ(plan.master_bytes + plan.moment_bytes, 0u);
    EXPECT_EQ(plan.host_state_bytes, there.master_bytes + there.moment_bytes);
    EXPECT_EQ(plan.stream_bytes, 2 * plan.host_state_bytes) << "a small model is one slice";
    EXPECT_EQ(plan.total_bytes(), plan.parameter_bytes + plan.gradient_bytes + plan.stream_bytes);
    EXPECT_EQ(plan.start_bytes, kElements * 4 + plan.parameter_bytes);
  }
}

TEST(MemoryPlanTest, planMemory_slicesOnTheHost_areThoseOfTheRank) {
  const std::vector<ParameterShape> shapes = {{.name = "weight", .sizes = {10000, 10000}}};
  DataParallelConfig config{.parameter_dtype = core::DType::kBFloat16,
                            .state_sharing = StateSharing::kSharded};
  config.optimizer.state_residence = StateResidence::kHost;

  const MemoryPlan plan = plan_memory(shapes, config, 4);

  EXPECT_EQ(plan.host_state_bytes, plan.buckets.total_elements / 4 * 12);
  EXPECT_EQ(plan.moving_host_bytes, plan.buckets.total_elements / 4 * 4);
  EXPECT_EQ(plan.stream_bytes, std::size_t{2} * 12 * 4 * 1024 * 1024);
}

TEST(MemoryPlanTest, planMemory_sgdWithoutMomentum_hasNoMoments) {
  const MemoryPlan plan = plan_memory(
      kShapes, {.optimizer = {.algorithm = OptimizerAlgorithm::kSgd, .momentum = 0}}, 1);

  EXPECT_EQ(plan.moment_bytes, 0u);
}

TEST(MemoryPlanTest, planMemory_bf16Moments_takeTwoBytesInsteadOfFour) {
  for (const core::DType parameters : {core::DType::kFloat32, core::DType::kBFloat16}) {
    const auto with = [&](core::DType state, OptimizerAlgorithm algorithm) {
      return plan_memory(kShapes,
                         {.parameter_dtype = parameters,
                          .state_sharing = StateSharing::kOff,
                          .optimizer = {.algorithm = algorithm, .state_dtype = state}},
                         2);
    };
    const MemoryPlan wide = with(core::DType::kFloat32, OptimizerAlgorithm::kAdamW);
    const MemoryPlan narrow = with(core::DType::kBFloat16, OptimizerAlgorithm::kAdamW);

    EXPECT_EQ(narrow.moment_bytes, kElements * 4);
    EXPECT_EQ(wide.total_bytes() - narrow.total_bytes(), kElements * 4) << "nothing else changes";
    EXPECT_EQ(with(core::DType::kBFloat16, OptimizerAlgorithm::kSgd).moment_bytes, kElements * 2);
  }
}

TEST(MemoryPlanTest, describe_namesParametersAndSizes) {
  const MemoryPlan plan = plan_memory(kShapes, {.gradient_sync = GradientSync::kPerParameter}, 2);

  const auto lines = describe(plan.buckets, {"embedding", "weight", "bias"}, core::DType::kFloat32);

  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[2], HasSubstr("bucket 2: 1 parameter, 0.06 MiB: embedding"));
}

TEST(DataParallelConfigTest, validate_badValues_nameTheFlag) {
  const auto message = [](const DataParallelConfig& config) -> std::string {
    try {
      config.validate();
    } catch (const core::ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };

  EXPECT_THAT(message({.bucket_mb = -1}), HasSubstr("--bucket-mb"));
  EXPECT_THAT(message({.first_bucket_mb = 1e9}), HasSubstr("--first-bucket-mb"));
  EXPECT_THAT(message({.parameter_dtype = core::DType::kInt64}), HasSubstr("int64"));
  EXPECT_THAT(message({.reduce_dtype = core::DType::kFloat16}), HasSubstr("--reduce-dtype"));
  EXPECT_THAT(message({.grad_accumulation = 0}), HasSubstr("--grad-accumulation"));
  EXPECT_THAT(message({.optimizer = {.beta1 = 1.5}}), HasSubstr("--beta1"));
  EXPECT_THAT(message({.optimizer = {.grad_clip = -1}}), HasSubstr("--grad-clip"));
  EXPECT_THAT(message({.optimizer = {.state_dtype = core::DType::kFloat16}}),
              HasSubstr("--optimizer-state-dtype: expected float32 or bfloat16, found float16"));
  EXPECT_EQ(message({}), "accepted");
}

}  // namespace
}  // namespace sidestream::parallel
