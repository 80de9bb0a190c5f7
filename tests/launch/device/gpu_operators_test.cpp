// What automatic operators of GPUs come to where there is none, or where something stands in the
// way that no GPU is asked about.
#include "launch/device/gpu_operators.hpp"

#include <gtest/gtest.h>

#include "launch/options/train_parser.hpp"
#include "model/device/products.hpp"

namespace sidestream::launch {
namespace {

TrainOptions settled(std::vector<std::string> flags, bool on_gpu) {
  flags.insert(flags.end(), {"--data", "synthetic", "--model", "gpt2-tiny"});
  TrainOptions options = parse_train_options(flags);
  settle_gpu_operators(options, on_gpu);
  return options;
}

TEST(GpuOperatorsTest, a_processor_has_none) {
  const TrainOptions options = settled({"--precision", "bf16"}, /*on_gpu=*/false);
  EXPECT_FALSE(options.model.config.packed_attention);
  EXPECT_FALSE(options.model.config.tune_products);
}

TEST(GpuOperatorsTest, fp32_and_libtorchs_operators_have_none) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--precision", "fp32"},
                                                {"--precision", "tf32"},
                                                {"--precision", "bf16", "--fused-ops", "off"}}) {
    const TrainOptions options = settled(flags, /*on_gpu=*/true);
    EXPECT_FALSE(options.model.config.packed_attention) << flags.back();
    EXPECT_FALSE(options.model.config.tune_products) << flags.back();
  }
}

// Of models that it does not do, cuDNN is not asked: there is no GPU here.
TEST(GpuOperatorsTest, what_excludes_one_of_them_leaves_the_other) {
  for (const auto& [name, value] : {std::pair("--dropout", "0.1"), {"--heads", "32"}}) {
    const TrainOptions options =
        settled({"--precision", "bf16", "--deterministic", name, value}, /*on_gpu=*/true);
    EXPECT_FALSE(options.model.config.packed_attention) << name;
    EXPECT_FALSE(options.model.config.tune_products) << "two runs have to be the same bits";
    EXPECT_EQ(settled({"--precision", "bf16", name, value}, true).model.config.tune_products,
              model::device::make_products(model::device::Algorithms::kFirst) != nullptr)
        << name;
  }
}

TEST(GpuOperatorsTest, what_was_said_stays) {
  const TrainOptions options =
      settled({"--precision", "bf16", "--packed-attention", "off", "--tune-products", "on"}, true);
  EXPECT_FALSE(options.model.config.packed_attention);
  EXPECT_TRUE(options.model.config.tune_products);
}

}  // namespace
}  // namespace sidestream::launch
