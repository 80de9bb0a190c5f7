// The roofs of a run: measured figures come first.
#include "launch/ceilings/roofs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;

constexpr JoinedRanks kTwoRanks = {.count = 2};

Ceilings measured_on(const std::string& name) {
  Ceilings ceilings{.processor = "some processor", .cores = 4, .fp32_flops_per_s = 4e11};
  ceilings.memory_bytes_per_s = 8e10;
  ceilings.link_bytes_per_s = {{2, 1e10}};
  ceilings.device = DeviceCeilings{.name = name,
                                   .flops_per_s = {{"bf16", 7e14}},
                                   .memory_bytes_per_s = 3e12,
                                   .host_to_device_bytes_per_s = 5e10,
                                   .link_bytes_per_s = {{2, 3e11}}};
  return ceilings;
}

TEST(RoofsTest, measured_figures_of_the_same_gpu_come_before_its_datasheet) {
  const auto roofs =
      roofs_of_device(measured_on("NVIDIA H100 80GB HBM3"), "NVIDIA H100 80GB HBM3", kTwoRanks);

  ASSERT_TRUE(roofs);
  EXPECT_EQ(roofs->flops_per_s.at("bf16"), 7e14);
  EXPECT_EQ(roofs->memory_bytes_per_s, 3e12);
  EXPECT_EQ(roofs->host_to_device_bytes_per_s, 5e10);
  EXPECT_EQ(roofs->link_bytes_per_s, 3e11) << "of the GPUs, not of host ranks";
  EXPECT_THAT(roofs->source, HasSubstr("measured on"));
}

TEST(RoofsTest, what_was_not_measured_is_the_datasheets_and_marked) {
  const auto roofs =
      roofs_of_device(measured_on("NVIDIA H100 80GB HBM3"), "NVIDIA H100 80GB HBM3", kTwoRanks);

  ASSERT_TRUE(roofs);
  EXPECT_EQ(roofs->flops_per_s.at("tf32"), 494.5e12);
  EXPECT_TRUE(roofs->of_datasheet.contains("tf32"));
  EXPECT_FALSE(roofs->of_datasheet.contains("bf16"));
  EXPECT_FALSE(roofs->of_datasheet.contains("memory"));
}

TEST(RoofsTest, figures_of_another_gpu_do_not_count) {
  for (const char* other : {"NVIDIA A100-SXM4-80GB", ""}) {
    const auto roofs = roofs_of_device(measured_on(other), "NVIDIA H100 80GB HBM3", kTwoRanks);
    ASSERT_TRUE(roofs);
    EXPECT_EQ(roofs->flops_per_s.at("bf16"), 989e12);
    EXPECT_THAT(roofs->source, HasSubstr("not measured"));
  }
  EXPECT_FALSE(roofs_of_device(measured_on("a"), "unheard of", kTwoRanks));
}

TEST(RoofsTest, the_memory_of_an_a100_says_which_one_it_is) {
  const auto bandwidth = [](const char* name, std::uint64_t bytes) {
    return roofs_of_device(std::nullopt, name, {}, bytes)->memory_bytes_per_s;
  };
  EXPECT_EQ(bandwidth("NVIDIA A100", 42'298'834'944), 1555e9);
  EXPECT_EQ(bandwidth("NVIDIA A100", 84'974'239'744), 2039e9);
  EXPECT_EQ(bandwidth("NVIDIA A100-SXM4-80GB", 84'974'239'744), 2039e9);
  EXPECT_EQ(bandwidth("NVIDIA A100", 0), 2039e9);
}

TEST(RoofsTest, a_rank_has_its_part_of_the_processor) {
  advice::Facts facts{.world_size = 2};
  facts.environment = {{"processor", "some processor"}, {"threads_per_rank", "1"}};
  const auto roofs = roofs_of_processor(measured_on("x"), facts);
  ASSERT_TRUE(roofs);
  EXPECT_EQ(roofs->flops_per_s.at("fp32"), 1e11);
  EXPECT_EQ(roofs->link_bytes_per_s, 1e10);
  facts.environment["processor"] = "another";
  EXPECT_FALSE(roofs_of_processor(measured_on("x"), facts));
}

TEST(RoofsTest, the_link_of_one_host_is_no_roof_of_several) {
  const char* gpu = "NVIDIA H100 80GB HBM3";
  EXPECT_EQ(roofs_of_device(measured_on(gpu), gpu, {.count = 2, .hosts = 2})->link_bytes_per_s, 0);

  advice::Facts facts{.world_size = 2};
  facts.environment = {{"processor", "some processor"}, {"nodes", "2"}};
  EXPECT_EQ(roofs_of_processor(measured_on(gpu), facts)->link_bytes_per_s, 0);
  facts.environment["nodes"] = "1";
  EXPECT_EQ(roofs_of_processor(measured_on(gpu), facts)->link_bytes_per_s, 1e10);
}

}  // namespace
}  // namespace sidestream::launch
