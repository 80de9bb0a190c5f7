// What happens on a GPU where each rank keeps slices of the state, on a machine without one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/parallel/device_path_case.hpp"

namespace sidestream::test {
namespace {

using parallel::GradientSync;

// One of two ranks whose peer brings zeros: what is queued, not what is learned.
struct SlicedDevicePathTest : DevicePathTest {
  comm::NcclCommunicator of_two{
      std::make_unique<comm::ScriptedHost>(2), {.driver = driver, .index = 0}, api, {}};
  const ToyOptions options = on_device(
      {.config = {.bucket_mb = kSmallBuckets, .state_sharing = parallel::StateSharing::kSharded}});
};

TEST_F(SlicedDevicePathTest, slices_are_summed_then_updated_then_gathered) {
  ToyNet net(0);
  parallel::DataParallel replicas(net, of_two, options.config, options.tools);

  run_toy_step(net, replicas, of_two, options, 1);
  driver->enqueue("end of step 1", compute);

  EXPECT_GE(driver->count_of("reduce_scatter"), 1u) << "small parameters fill each other's padding";
  EXPECT_EQ(driver->count_of("squares"), driver->count_of("reduce_scatter"));
  EXPECT_EQ(driver->count_of("all_reduce"), 1u) << "of the squares";
  EXPECT_TRUE(driver->is_after("all_reduce", "squares"));
  EXPECT_TRUE(driver->is_after("settle", "all_reduce"));
  EXPECT_TRUE(driver->is_after("adamw", "settle"));
  EXPECT_TRUE(driver->is_after("all_gather", "adamw"));
  EXPECT_NE(driver->stream_of("all_gather"), compute);
  EXPECT_TRUE(driver->is_after("end of step 1", "all_gather"));
}

// Behind the second step, in which state moves to the order that the first one has shown.
TEST_F(SlicedDevicePathTest, sum_of_the_next_step_comes_after_what_was_queued_before_it) {
  for (const GradientSync sync : {GradientSync::kBucketed, GradientSync::kOverlapped}) {
    ToyOptions of_kind = options;
    of_kind.config.gradient_sync = sync;
    ToyNet net(0);
    parallel::DataParallel replicas(net, of_two, of_kind.config, of_kind.tools);
    for (int step = 1; step <= 2; ++step) run_toy_step(net, replicas, of_two, of_kind, step);
    const std::string mark = "end of step 2, " + std::to_string(static_cast<int>(sync));
    driver->enqueue(mark, compute);

    run_toy_step(net, replicas, of_two, of_kind, 3);

    EXPECT_TRUE(driver->is_after("reduce_scatter", mark)) << mark;
  }
}

// In the order that is known at first, and in the one that the first step has shown.
TEST_F(SlicedDevicePathTest, weights_are_gathered_in_memory_that_nccl_has_registered) {
  ToyNet net(0);
  parallel::DataParallel replicas(net, of_two, options.config, options.tools);

  for (int step = 1; step <= 3; ++step) {
    const int in_windows = api->gathers_in_windows;
    const std::size_t all = driver->count_of("all_gather");
    run_toy_step(net, replicas, of_two, options, step);
    EXPECT_GT(api->gathers_in_windows, in_windows);
    if (step == 2) continue;  // state is gathered, too: it moves to the new order
    EXPECT_EQ(static_cast<std::size_t>(api->gathers_in_windows - in_windows),
              driver->count_of("all_gather") - all);
  }
}

TEST_F(SlicedDevicePathTest, weights_stay_where_their_module_outlives_the_communicator) {
  ToyNet net(0);
  std::vector<torch::Tensor> before;
  {
    auto short_lived = std::make_unique<comm::NcclCommunicator>(
        std::make_unique<comm::ScriptedHost>(2), comm::DeviceContext{.driver = driver, .index = 0},
        api, comm::NcclConfig{});
    const parallel::DataParallel replicas(net, *short_lived, options.config, options.tools);
    for (const torch::Tensor& parameter : net.parameters()) before.push_back(parameter.clone());
  }
  const auto after = net.parameters();
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].equal(before[i]));
}

TEST_F(SlicedDevicePathTest, weights_are_waited_for_where_they_are_used) {
  ToyNet net(0);
  parallel::DataParallel replicas(net, of_two, options.config, options.tools);
  const auto arrived = replicas.weight_arrival();
  run_toy_step(net, replicas, of_two, options, 1);
  driver->enqueue("forward before its weights", compute);

  for (const torch::Tensor& parameter : net.parameters()) arrived(parameter);
  driver->enqueue("forward behind its weights", compute);

  EXPECT_FALSE(driver->is_after("forward before its weights", "all_gather"));
  EXPECT_TRUE(driver->is_after("forward behind its weights", "all_gather"));
}

TEST_F(SlicedDevicePathTest, steps_never_wait_for_the_device) {
  ToyNet net(0);
  parallel::DataParallel replicas(net, of_two, options.config, options.tools);
  const int synchronizations = driver->synchronizations;
  driver->hold();  // nothing on the device is ever done

  for (int step = 1; step <= 3; ++step) run_toy_step(net, replicas, of_two, options, step);

  EXPECT_EQ(driver->synchronizations, synchronizations);
  driver->release();
}

}  // namespace
}  // namespace sidestream::test
