// What one flag decides for several components is spread in one place.
#include "launch/assembly/assembly.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace sidestream::launch {
namespace {

TEST(AssemblyTest, communicatorConfig_hasTheDeadlinesOfTheRun) {
  TrainOptions options;
  options.timeouts.setup = std::chrono::seconds(7);
  options.timeouts.step = std::chrono::seconds(8);
  options.comm.shared_memory = false;

  const comm::CommunicatorConfig config = communicator_config(options);

  EXPECT_EQ(config.timeout_setup, std::chrono::seconds(7));
  EXPECT_EQ(config.timeout_collective, std::chrono::seconds(8));
  EXPECT_FALSE(config.shared_memory);
}

TEST(AssemblyTest, dataParallelConfig_hasTheTypeOfThePrecision) {
  TrainOptions options;

  options.precision = Precision::kBf16;
  EXPECT_EQ(data_parallel_config(options).parameter_dtype, core::DType::kBFloat16);
  options.precision = Precision::kFp32;
  EXPECT_EQ(data_parallel_config(options).parameter_dtype, core::DType::kFloat32);
}

TEST(AssemblyTest, dataParallelConfig_roundsWithTheSeedOfTheRun) {
  TrainOptions options;
  options.seed = 77;

  EXPECT_EQ(data_parallel_config(options).optimizer.rounding_seed, 77u);
}

TEST(AssemblyTest, dataParallelConfig_stateIsSlicedWhereNoMemoryIsShared) {
  using parallel::StateSharing;
  const auto sharing_of = [](StateSharing wanted, bool shared_memory, Device device) {
    TrainOptions options;
    options.parallel.state_sharing = wanted;
    options.comm.shared_memory = shared_memory;
    options.device = device;
    return data_parallel_config(options).state_sharing;
  };

  EXPECT_EQ(sharing_of(StateSharing::kOn, true, Device::kCpu), StateSharing::kOn);
  EXPECT_EQ(sharing_of(StateSharing::kOn, false, Device::kCpu), StateSharing::kSharded);
  EXPECT_EQ(sharing_of(StateSharing::kOn, true, Device::kCuda), StateSharing::kSharded);
  EXPECT_EQ(sharing_of(StateSharing::kAuto, false, Device::kCpu), StateSharing::kOff);
  EXPECT_EQ(sharing_of(StateSharing::kAuto, true, Device::kCpu), StateSharing::kAuto);
  EXPECT_EQ(sharing_of(StateSharing::kAuto, true, Device::kCuda), StateSharing::kOff);
}

}  // namespace
}  // namespace sidestream::launch
