// An update that is captured once and launched again in every step, as in a CUDA graph: the
// launches are kept with the arguments of their step, and nothing but device memory tells them of
// another.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/device/nccl_communicator.hpp"
#include "core/base/error.hpp"
#include "tests/comm/device/fake_nccl.hpp"
#include "tests/comm/device/scripted_host.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

// HostKernels whose launches can be kept instead of done, and done again and again.
class KernelTape final : public optim::DeviceKernels {
 public:
  void start() { captures_ = true; }
  void stop() { captures_ = false; }
  void replay() const {
    for (const auto& launch : tape_) launch();
  }

  void squares(const optim::SquaresJob& job, optim::DeviceStream stream) override {
    launch([=, this] { host_.squares(job, stream); });
  }
  void settle(const optim::SettleJob& job, optim::DeviceStream stream) override {
    launch([=, this] { host_.settle(job, stream); });
  }
  void adamw(const optim::AdamWJob& job, optim::DeviceStream stream) override {
    launch([=, this] { host_.adamw(job, stream); });
  }
  void sgd(const optim::SgdJob& job, optim::DeviceStream stream) override {
    launch([=, this] { host_.sgd(job, stream); });
  }
  void round(const optim::RoundingJob& job, optim::DeviceStream stream) override {
    launch([=, this] { host_.round(job, stream); });
  }
  void set_rule(const optim::StepRule& rule, optim::StepRule* to,
                optim::DeviceStream stream) override {
    if (captures_) throw core::Error("the rule of one step became a part of the graph");
    host_.set_rule(rule, to, stream);
  }

 private:
  void launch(std::function<void()> work) { captures_ ? tape_.push_back(std::move(work)) : work(); }

  optim::HostKernels host_;
  std::vector<std::function<void()>> tape_;
  bool captures_ = false;
};

constexpr int kSteps = 20, kCapturedStep = 4, kTakenBefore = 10;

double rate(int step) { return 1e-2 / step; }

// Gradients that are the same in every step: what is replayed here computes none.
torch::Tensor loss_of(ToyNet& net) {
  torch::Tensor loss = torch::zeros({});
  double factor = 0.5;
  for (const torch::Tensor& parameter : net.parameters()) {
    loss = loss + (parameter * factor).sum();
    factor += 0.75;
  }
  return loss;
}

std::vector<float> parameters_of(const ToyNet& net) {
  std::vector<float> all;
  for (const torch::Tensor& parameter : net.parameters()) {
    const torch::Tensor flat = parameter.detach().to(torch::kFloat32).flatten();
    all.insert(all.end(), flat.const_data_ptr<float>(),
               flat.const_data_ptr<float>() + flat.numel());
  }
  return all;
}

struct CapturedUpdateTest : testing::Test {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  std::shared_ptr<comm::nccl::FakeNccl> api = std::make_shared<comm::nccl::FakeNccl>(driver);
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  comm::NcclCommunicator communicator{
      std::make_unique<comm::ScriptedHost>(1), {.driver = driver, .index = 0}, api, {}};
  // The peer brings zeros and takes nothing.
  comm::NcclCommunicator of_two{
      std::make_unique<comm::ScriptedHost>(2), {.driver = driver, .index = 0}, api, {}};

  static void queue_step(ToyNet& net, parallel::DataParallel& replicas) {
    replicas.begin_micro_step(0);
    loss_of(net).backward(replicas.loss_scale());
    replicas.finish_backward();
    replicas.update_prepared();
  }

  std::vector<float> state_after(const parallel::DataParallelConfig& config, bool captures) {
    const auto tape = std::make_shared<KernelTape>();
    ToyNet net(0);
    const bool slices = config.state_sharing == parallel::StateSharing::kSharded;
    parallel::DataParallel replicas(
        net, slices ? of_two : communicator, config,
        {.kernels = tape, .current_stream = [this] { return compute; }});
    const int before = config.loss_scale.kind == optim::LossScaling::kOff ? 0 : kTakenBefore;
    replicas.set_steps_taken(before);
    replicas.restore_loss_scale({.scale = 1024, .good_steps = 0, .left_out = 3});
    for (int step = 1; step <= kSteps; ++step) {
      replicas.prepare_update(rate(step));
      const bool replays = captures && step >= kCapturedStep;
      if (replays && step == kCapturedStep) {
        tape->start();
        queue_step(net, replicas);
        tape->stop();
      } else if (replays) {
        replicas.count_replayed_step();
      } else {
        queue_step(net, replicas);
      }
      if (replays) tape->replay();
      EXPECT_EQ(replicas.steps_taken(), before + step);
    }
    // Narrow moments and slices show in the weights that they lead to.
    const bool narrow = config.optimizer.state_dtype == core::DType::kBFloat16;
    if (slices) return parameters_of(net);
    return narrow ? weights_of(replicas) : state_of(replicas);
  }

  void expect_same_state(const parallel::DataParallelConfig& config) {
    EXPECT_EQ(state_after(config, true), state_after(config, false));
  }
};

TEST_F(CapturedUpdateTest, rate_and_bias_corrections_are_those_of_the_step_that_is_replayed) {
  expect_same_state({});
  expect_same_state({.optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd}});
}

TEST_F(CapturedUpdateTest, draws_of_narrow_moments_are_those_of_the_step_that_is_replayed) {
  for (const auto algorithm :
       {parallel::OptimizerAlgorithm::kAdamW, parallel::OptimizerAlgorithm::kSgd}) {
    expect_same_state(
        {.optimizer = {
             .algorithm = algorithm, .state_dtype = core::DType::kBFloat16, .rounding_seed = 7}});
  }
}

TEST_F(CapturedUpdateTest, masters_of_bf16_weights_and_their_clipping_are_captured) {
  expect_same_state({.parameter_dtype = core::DType::kBFloat16, .optimizer = {.grad_clip = 1e-2}});
  expect_same_state({.optimizer = {.grad_clip = 0}});
}

// The device counts the updates; gradients and scale are the same in every step here.
TEST_F(CapturedUpdateTest, bias_corrections_under_a_loss_scale_are_those_of_the_step) {
  const optim::LossScaleConfig scaling{
      .kind = optim::LossScaling::kDynamic, .scale = 1024, .interval = 1000};
  for (const auto dtype : {core::DType::kFloat16, core::DType::kFloat32}) {
    expect_same_state({.parameter_dtype = dtype, .loss_scale = scaling});
    expect_same_state({.parameter_dtype = dtype,
                       .optimizer = {.algorithm = parallel::OptimizerAlgorithm::kSgd},
                       .loss_scale = scaling});
  }
}

TEST_F(CapturedUpdateTest, slices_of_the_state_are_updated_as_the_whole_of_it_is) {
  for (const auto dtype : {core::DType::kFloat32, core::DType::kBFloat16})
    expect_same_state(
        {.parameter_dtype = dtype, .state_sharing = parallel::StateSharing::kSharded});
}

TEST_F(CapturedUpdateTest, layout_is_known_once_the_order_is_settled_and_changes_with_it) {
  ToyNet net(0);
  parallel::DataParallel replicas(net, communicator, {},
                                  {.kernels = std::make_shared<optim::HostKernels>(),
                                   .current_stream = [this] { return compute; }});
  std::vector<std::uint64_t> layouts;
  for (int step = 1; step <= 3; ++step) {
    layouts.push_back(replicas.layout());
    replicas.prepare_update(rate(step));
    queue_step(net, replicas);
  }
  auto order = replicas.bucket_order();
  std::swap(order.front(), order.back());
  const std::uint64_t before = replicas.layout();
  replicas.set_bucket_order(order);

  EXPECT_EQ(layouts[0], 0u);
  EXPECT_EQ(layouts[1], 0u);
  EXPECT_NE(layouts[2], 0u);
  EXPECT_EQ(before, layouts[2]);
  EXPECT_NE(replicas.layout(), before);
}

TEST_F(CapturedUpdateTest, abandoned_step_leaves_the_next_one_as_it_would_have_been) {
  const auto state_with = [this](bool abandons) {
    ToyNet net(0);
    parallel::DataParallel replicas(net, communicator, {},
                                    {.kernels = std::make_shared<optim::HostKernels>(),
                                     .current_stream = [this] { return compute; }});
    for (int step = 1; step <= 4; ++step) {
      if (abandons && step == 3) {
        replicas.begin_micro_step(0);
        loss_of(net).backward();
        replicas.abandon_step(2);
      }
      replicas.prepare_update(rate(step));
      queue_step(net, replicas);
    }
    return state_of(replicas);
  };

  EXPECT_EQ(state_with(true), state_with(false));
}

TEST_F(CapturedUpdateTest, norm_that_is_asked_for_before_a_prepared_update_leaves_it_as_it_was) {
  const auto state_with = [this](bool asks) {
    ToyNet net(0);
    parallel::DataParallel replicas(net, communicator, {},
                                    {.kernels = std::make_shared<optim::HostKernels>(),
                                     .current_stream = [this] { return compute; }});
    for (int step = 1; step <= 3; ++step) {
      replicas.prepare_update(rate(step));
      replicas.begin_micro_step(0);
      loss_of(net).backward();
      replicas.finish_backward();
      if (asks) {
        EXPECT_GT(replicas.grad_norm(), 0);
      }
      replicas.update_prepared();
    }
    return state_of(replicas);
  };

  EXPECT_EQ(state_with(true), state_with(false));
}

}  // namespace
}  // namespace sidestream::test
