// A GPU on a machine without one: kernels are host loops, streams and NCCL are fakes that remember
// the order of the work.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "comm/device/nccl_communicator.hpp"
#include "comm/single_communicator.hpp"
#include "tests/comm/device/fake_nccl.hpp"
#include "tests/comm/device/scripted_host.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {

struct DevicePathTest : testing::Test {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  std::shared_ptr<comm::nccl::FakeNccl> api = std::make_shared<comm::nccl::FakeNccl>(driver);
  std::shared_ptr<optim::HostKernels> kernels = std::make_shared<optim::HostKernels>();
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  comm::NcclCommunicator communicator{
      std::make_unique<comm::ScriptedHost>(1), {.driver = driver, .index = 0}, api, {}};

  DevicePathTest() {
    kernels->on_launch = [this](const std::string& name, comm::Stream stream) {
      driver->enqueue(name, stream);
    };
  }

  ToyOptions on_device(ToyOptions options) const {
    options.tools = {.kernels = kernels, .current_stream = [this] { return compute; }};
    return options;
  }

  void expect_same_weights(const ToyOptions& options) {
    comm::SingleCommunicator alone;
    const ToyResult host = train_toy(alone, options);
    const ToyResult device = train_toy(communicator, on_device(options));
    EXPECT_EQ(host.losses, device.losses);
    EXPECT_EQ(host.weights, device.weights);
  }
};

}  // namespace sidestream::test
