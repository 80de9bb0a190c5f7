#include "comm/device/device_factory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "core/base/error.hpp"
#include "tests/comm/device/fake_nccl.hpp"
#include "tests/comm/device/scripted_host.hpp"

namespace sidestream::comm {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct DeviceFactoryTest : testing::Test {
  std::shared_ptr<cuda::FakeDriver> driver = std::make_shared<cuda::FakeDriver>();
  std::shared_ptr<nccl::FakeNccl> api = std::make_shared<nccl::FakeNccl>(driver);
  std::shared_ptr<HostRecord> record = std::make_shared<HostRecord>();
  ScriptedHost::Reply reply = own_gpu;
  CommunicatorConfig config{.device = DeviceWish::kCuda};
  std::string nccl_missing;
  std::vector<std::string> warnings;

  // Peers say what this rank says, of a GPU of their own.
  static std::string own_gpu(const std::string& mine, int rank) {
    if (mine.find("GPU-") == std::string::npos) return mine;
    DeviceFinding finding = DeviceFinding::from_text(mine);
    finding.index = rank;
    finding.uuid = "GPU-" + std::to_string(rank);
    return finding.to_text();
  }

  std::unique_ptr<Communicator> make(int ranks) {
    config.gpu = find_device(*driver, 0);
    return place_on_device(std::make_unique<ScriptedHost>(ranks, record, reply), config,
                           {.driver = driver,
                            .load_nccl = [this]() -> std::shared_ptr<nccl::Api> {
                              if (!nccl_missing.empty()) throw core::ConfigError(nccl_missing);
                              return api;
                            }},
                           {}, warnings);
  }
  std::string refusal_of(int ranks) {
    try {
      make(ranks);
    } catch (const core::ConfigError& error) {
      EXPECT_TRUE(record->gone) << "the host communicator must have ended before";
      return error.what();
    }
    return "";
  }
};

TEST_F(DeviceFactoryTest, several_ranks_get_nccl_one_rank_a_gpu_alone) {
  EXPECT_EQ(make(2)->backend_name(), "nccl");
  EXPECT_EQ(make(1)->backend_name(), "single");
  EXPECT_EQ(make(1)->device(), 0);
  config.backend = Backend::kNccl;
  EXPECT_EQ(make(1)->backend_name(), "nccl");
  config.backend = Backend::kMpi;
  EXPECT_EQ(make(2)->backend_name(), "mpi+staging");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(DeviceFactoryTest, ranks_for_the_processor_keep_the_host_communicator) {
  config.device = DeviceWish::kCpu;

  const auto communicator = make(2);

  EXPECT_EQ(communicator->backend_name(), "scripted");
  EXPECT_EQ(communicator->device(), std::nullopt);
}

TEST_F(DeviceFactoryTest, automatic_without_a_gpu_warns_once_and_goes_on) {
  driver->devices = 0;
  config.device = DeviceWish::kAuto;

  EXPECT_EQ(make(2)->backend_name(), "scripted");
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("no NVIDIA driver is loaded"));
}

TEST_F(DeviceFactoryTest, nccl_without_a_gpu_is_refused) {
  driver->devices = 0;
  config = {.backend = Backend::kNccl};

  EXPECT_THAT(refusal_of(2), HasSubstr("rank 0 on node1 has no usable GPU"));
}

TEST_F(DeviceFactoryTest, two_ranks_on_one_gpu_are_refused_unless_allowed) {
  reply = [](const std::string& mine, int) { return mine; };

  EXPECT_THAT(refusal_of(2), HasSubstr("would share GPU 0"));
  config.gpu_sharing = GpuSharing::kAllowed;
  unsetenv("NCCL_HOSTID");
  EXPECT_EQ(make(2)->backend_name(), "nccl");
  EXPECT_STREQ(std::getenv("NCCL_HOSTID"), "node1-rank0");
  unsetenv("NCCL_HOSTID");
}

TEST_F(DeviceFactoryTest, another_nccl_at_run_time_is_refused_with_both_versions) {
  api->runtime = 22304;

  EXPECT_THAT(refusal_of(2), HasSubstr("rank 0 on node1: NCCL 2.23.4 was loaded, this build was "
                                       "made with NCCL 2.28.9"));
}

TEST_F(DeviceFactoryTest, nccl_that_cannot_be_loaded_on_a_peer_is_refused_everywhere) {
  reply = [](const std::string& mine, int rank) {
    return mine.empty() ? "libnccl.so.2: cannot open shared object file" : own_gpu(mine, rank);
  };

  EXPECT_THAT(refusal_of(2), HasSubstr("rank 1 on node1: libnccl.so.2: cannot open"));
}

TEST_F(DeviceFactoryTest, nccl_that_cannot_be_loaded_here_is_refused) {
  nccl_missing = "backend nccl: the NCCL library cannot be loaded: no such file";

  EXPECT_THAT(refusal_of(2), HasSubstr("cannot be loaded: no such file"));
}

TEST_F(DeviceFactoryTest, interface_that_is_not_there_is_refused_with_those_that_are) {
  setenv("NCCL_SOCKET_IFNAME", "nothing-like-it", 1);

  const std::string refusal = refusal_of(2);
  unsetenv("NCCL_SOCKET_IFNAME");

  EXPECT_THAT(refusal, HasSubstr("NCCL_SOCKET_IFNAME is 'nothing-like-it'"));
  EXPECT_THAT(refusal, HasSubstr("lo"));
}

TEST_F(DeviceFactoryTest, staged_sums_come_back_ordered_and_unchanged_by_one_rank) {
  config.backend = Backend::kMpi;
  const auto communicator = make(2);
  const Stream compute = driver->create_stream(cuda::Priority::kNormal);
  std::array<float, 4> data{1, 2, 3, 4};

  driver->enqueue("backward", compute);
  Work work =
      communicator->all_reduce(data.data(), data.size(), core::DType::kFloat32, {.after = compute});
  work.wait_on(compute);
  driver->enqueue("optimizer", compute);

  EXPECT_TRUE(driver->is_after("copy", "backward"));
  EXPECT_TRUE(driver->is_after("optimizer", "copy"));
  EXPECT_EQ(data, (std::array<float, 4>{1, 2, 3, 4}));
}

TEST_F(DeviceFactoryTest, staging_memory_is_pinned_while_it_is_used) {
  config.backend = Backend::kMpi;
  auto communicator = make(2);
  const Stream compute = driver->create_stream(cuda::Priority::kNormal);
  std::vector<float> data(std::size_t{1} << 19);

  communicator->all_reduce(data.data(), 16, core::DType::kFloat32, {.after = compute}).wait();
  communicator->all_reduce(data.data(), data.size(), core::DType::kFloat32, {.after = compute})
      .wait();  // more than there was
  const auto pinned = driver->pinned_places;
  communicator.reset();

  EXPECT_EQ(pinned.size(), 2U);
  EXPECT_TRUE(driver->pinned_places.empty());
}

}  // namespace
}  // namespace sidestream::comm
