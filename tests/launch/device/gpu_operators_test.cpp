// What automatic operators of GPUs come to where there is none, or where something stands in the
// way that no GPU is asked about.
#include "launch/device/gpu_operators.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "launch/options/train_parser.hpp"
#include "model/device/products.hpp"
#include "tests/parallel/thread_communicator.hpp"

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
              model::device::make_products() != nullptr)
        << name;
  }
}

// A rank whose cuDNN is older than the others' is not left alone with other attention.
TEST(GpuOperatorsTest, what_is_automatic_is_on_where_all_ranks_have_it) {
  const auto agreed = [](std::vector<std::string> flags) {
    std::array<model::ModelConfig, 2> found;
    test::run_ranks(2, [&](test::ThreadCommunicator& communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      TrainOptions options = settled(flags, /*on_gpu=*/false);
      options.model.config.packed_attention |= rank == 0;
      options.model.config.tune_products = true;
      agree_on_gpu_operators(options, communicator);
      found[rank] = options.model.config;
    });
    EXPECT_EQ(found[0].tune_products, found[1].tune_products);
    return std::pair(found[0], found[1]);
  };
  const auto automatic = agreed({"--precision", "bf16"});
  EXPECT_FALSE(automatic.first.packed_attention);
  EXPECT_FALSE(automatic.second.packed_attention);
  EXPECT_TRUE(automatic.first.tune_products);
  EXPECT_TRUE(agreed({"--precision", "bf16", "--packed-attention", "on"}).second.packed_attention);
}

// Whose GPU is asked, and answers so.
class AskedAttention final : public model::device::PackedAttention {
 public:
  explicit AskedAttention(std::function<std::string()> answer) : answer_(std::move(answer)) {}

  std::string objection(const Sizes&) const override { return answer_(); }
  void forward(const Forward&) const override {}
  void backward(const Backward&) const override {}

 private:
  std::function<std::string()> answer_;
};

TEST(GpuOperatorsTest, attention_that_cannot_be_asked_about_is_none) {
  const TrainOptions options = settled({"--precision", "bf16"}, /*on_gpu=*/false);
  const auto has = [&](const std::function<std::string()>& answer) {
    return has_packed_attention(AskedAttention(answer), options);
  };
  EXPECT_TRUE(has([] { return ""; }));
  EXPECT_FALSE(has([] { return "too old"; }));
  EXPECT_FALSE(has([]() -> std::string { TORCH_CHECK(false, "CUDNN_STATUS_NOT_INITIALIZED"); }));
  EXPECT_FALSE(has([]() -> std::string { throw core::Error("cuDNN: its graph"); }));
  EXPECT_FALSE(has([]() -> std::string { throw std::runtime_error("no libcudnn.so.9"); }));
}

TEST(GpuOperatorsTest, memory_that_runs_out_is_no_answer_about_attention) {
  const TrainOptions options = settled({"--precision", "bf16"}, /*on_gpu=*/false);
  const AskedAttention full(
      []() -> std::string { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory"); });

  EXPECT_THROW(has_packed_attention(full, options), c10::OutOfMemoryError);
}

TEST(GpuOperatorsTest, what_was_said_stays) {
  const TrainOptions options =
      settled({"--precision", "bf16", "--packed-attention", "off", "--tune-products", "on"}, true);
  EXPECT_FALSE(options.model.config.packed_attention);
  EXPECT_TRUE(options.model.config.tune_products);
}

}  // namespace
}  // namespace sidestream::launch
