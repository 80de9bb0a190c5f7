// How many kernels an operator launches and on which stream, what jobs are refused, and how rows
// are cut. On the processor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "model/device/device_operators.hpp"
#include "tests/model/device/host_block.hpp"
#include "tests/model/device/tested_queue.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

int streams[2];  // two addresses

struct LaunchesTest : testing::Test {
  LaunchesTest() {
    const auto host = std::make_shared<HostKernels>();
    host->grid().on_launch = [this](const char* kernel, DeviceStream stream) {
      launched.emplace_back(kernel);
      used.push_back(stream);
    };
    queue->kernels = host;
    queue->device = torch::kCPU;
    queue->current_stream = [this](const torch::Device&) { return current; };
  }

  std::vector<std::string> take() { return std::exchange(launched, {}); }

  std::vector<std::string> launched;
  std::vector<DeviceStream> used;
  DeviceStream current = &streams[0];
  LaunchQueuePtr queue = c10::make_intrusive<LaunchQueue>();
};

using Names = std::vector<std::string>;

TEST_F(LaunchesTest, operators_launch_what_they_need_and_no_more) {
  DeviceOperators operators(queue);
  const Tensor x = torch::randn({2, 3, 8}).requires_grad_(), one = torch::ones({8}),
               zero = torch::zeros({8});

  const NormedResidual normed = operators.add_norm(x, x, {one, zero});
  EXPECT_EQ(take(), Names{"norm"});
  normed.normed_btc.sum().backward();
  EXPECT_EQ(take(), (Names{"norm_backward", "column_sums"}));

  const Tensor branch = operators.linear(x, {torch::randn({8, 8}), one.clone().requires_grad_()});
  operators.add_norm(x, branch, {one, zero}).normed_btc.sum().backward();
  EXPECT_EQ(take(), (Names{"norm", "norm_backward", "column_sums"})) << "no sums of their own";

  const Tensor y = operators.mlp(x, {torch::randn({8, 32}), torch::zeros({32})},
                                 {torch::randn({32, 8}), zero}, MlpKeeps::kAll);
  EXPECT_EQ(take(), Names{"gelu"});
  y.sum().backward();
  EXPECT_EQ(take(), (Names{"gelu_backward", "column_sums", "row_sums", "column_sums"}));

  operators.linear(x, {torch::randn({8, 24}), torch::zeros({24})}).sum().backward();
  EXPECT_EQ(take(), (Names{"row_sums", "column_sums"}));

  operators
      .embed(torch::zeros({2, 3}, torch::kLong),
             {.tokens_vc = torch::randn({20, 8}).requires_grad_(),
              .positions_pc = torch::randn({3, 8}).requires_grad_(),
              .tied = {}})
      .sum()
      .backward();
  EXPECT_EQ(take(), (Names{"embed", "token_gradients", "token_pieces"}));

  const Tensor loss = operators.next_token_loss(
      x, {.tokens_vc = torch::randn({20, 8}), .positions_pc = {}, .tied = {}},
      torch::zeros({2, 3}, torch::kLong), {.vocab_size = 20, .chunks = 3});
  EXPECT_EQ(take(), (Names{"cross_entropy", "cross_entropy", "cross_entropy"}));
  loss.backward();
  EXPECT_EQ(take(), (Names{"scale", "scale"}));
}

TEST_F(LaunchesTest, kernels_go_to_the_stream_that_is_current_at_their_launch) {
  DeviceOperators operators(queue);
  const Tensor x = torch::randn({2, 3, 8}).requires_grad_();

  const Tensor y = operators.norm(x, {torch::ones({8}), torch::zeros({8})});
  current = &streams[1];
  y.sum().backward();

  EXPECT_EQ(used, (std::vector<DeviceStream>{&streams[0], &streams[1], &streams[1]}));
}

TEST_F(LaunchesTest, jobs_that_the_kernels_cannot_do_are_refused) {
  HostKernels kernels;
  float room[64] = {};
  const std::int64_t target = 0;
  const auto refused = [](const auto& action) {
    try {
      action();
    } catch (const core::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_THAT(refused([&] {
                kernels.norm_forward({.dtype = core::DType::kFloat32,
                                      .rows = 1,
                                      .width = kWidestNorm + 1,
                                      .residual = room,
                                      .branch = nullptr,
                                      .weight = room,
                                      .bias = room,
                                      .sum = nullptr,
                                      .normed = room,
                                      .mean = room,
                                      .rstd = room,
                                      .eps = 0},
                                     nullptr);
              }),
              testing::HasSubstr("expected a width of 1 to 8192, found 8193"));
  EXPECT_THAT(refused([&] {
                kernels.cross_entropy({.dtype = core::DType::kFloat32,
                                       .rows = 1,
                                       .stride = 20,
                                       .vocab_size = 20,
                                       .logits = room,
                                       .targets = &target,
                                       .losses = room,
                                       .gradient_scale = 1},
                                      nullptr);
              }),
              testing::HasSubstr("found a stride of 20"));
  EXPECT_THAT(
      refused([&] {
        kernels.gelu_forward(
            {.dtype = core::DType::kFloat64, .count = 1, .before = room, .activation = room},
            nullptr);
      }),
      testing::HasSubstr("expected float32, bfloat16 or float16, found float64"));
}

// What does not fit is read again from where it lies.
TEST_F(LaunchesTest, memory_of_a_block_changes_no_bit_of_the_loss) {
  const Tensor logits = torch::randn({270, 9024}).to(at::kBFloat16),
               targets = torch::randint(9000, {270}, torch::kLong);
  const auto run = [&](std::int64_t memory_bytes) {
    HostKernels kernels;
    kernels.grid().memory_bytes = memory_bytes;
    const Tensor losses = at::zeros({270}), gradient = logits.clone();
    kernels.cross_entropy({.dtype = core::DType::kBFloat16,
                           .rows = 270,
                           .stride = 9024,
                           .vocab_size = 9000,
                           .logits = gradient.mutable_data_ptr(),
                           .targets = targets.const_data_ptr<std::int64_t>(),
                           .losses = losses.mutable_data_ptr<float>(),
                           .gradient_scale = 1},
                          nullptr);
    return at::cat({losses, gradient.to(at::kFloat).view(-1)});
  };
  const Tensor all_of_it = run(1 << 20);

  for (const std::int64_t bytes : {0, 16, 8192, 10000}) EXPECT_TRUE(run(bytes).equal(all_of_it));
}

template <NormPass kPass>
void expect_threads_hold(std::int64_t width) {
  const std::int64_t threads = norm_threads<kPass>(width);
  ASSERT_GE(threads * norm_held<kPass>(width), width);
  ASSERT_LE(threads, most_norm_threads(norm_held<kPass>(width)));
  ASSERT_LE(threads * (norm_held<kPass>(width) - kHeldAtEnd), width) << "what is not asked for";
  ASSERT_EQ(threads % kWarp, 0);
}

TEST(GeometryTest, threads_of_a_row_hold_all_of_it) {
  for (std::int64_t width = 1; width <= kWidestNorm; ++width) {
    expect_threads_hold<NormPass::kForward>(width);
    expect_threads_hold<NormPass::kBackward>(width);
  }
  EXPECT_EQ(norm_threads<NormPass::kForward>(1600), 32);
  EXPECT_EQ(norm_threads<NormPass::kBackward>(1600), 128);
  EXPECT_EQ(norm_threads<NormPass::kBackward>(768), 32);
  EXPECT_EQ(loss_threads(50304, core::DType::kBFloat16), 512);
  for (std::int64_t width = 1; width <= kWidestNorm; width += 7) {
    const std::int64_t threads =
        norm_parts(100'000, width) / kMultiprocessors * norm_threads<NormPass::kBackward>(width);
    ASSERT_LE(threads, 512) << "more than a multiprocessor has registers for, width " << width;
  }
  EXPECT_EQ(loss_threads(512, core::DType::kBFloat16), 64);
}

}  // namespace
}  // namespace sidestream::model::device
