#include "comm/device/device_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/device/socket_interfaces.hpp"
#include "tests/comm/device/fake_driver.hpp"

namespace sidestream::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceFinding found(int index, const std::string& name = "Fake 100") {
  return {.index = index, .count = 2, .name = name, .uuid = "GPU-" + std::to_string(index)};
}

DeviceFinding none(const std::string& problem) { return {.problem = problem, .expected = true}; }

Topology topology_of(std::vector<std::string> hosts) {
  return {.size = static_cast<int>(hosts.size()), .hosts = std::move(hosts)};
}

// A collective orders itself behind no computation where the stream is null.
TEST(DeviceStreamTest, default_stream_of_libtorch_has_a_handle_that_is_not_null) {
  int stream = 0;

  EXPECT_NE(device_stream(nullptr), nullptr);
  EXPECT_EQ(device_stream(&stream), &stream);
}

TEST(DeviceChoiceTest, find_takes_the_gpu_with_the_number_of_the_rank_on_its_node) {
  cuda::FakeDriver driver;
  driver.devices = 4;

  const DeviceFinding finding = find_device(driver, 2);

  EXPECT_TRUE(finding.usable());
  EXPECT_EQ(finding.index, 2);
  EXPECT_EQ(driver.current, 2);
  EXPECT_EQ(finding.uuid, "GPU-2");
}

TEST(DeviceChoiceTest, find_with_one_visible_gpu_takes_it_whatever_the_rank) {
  cuda::FakeDriver driver;

  EXPECT_EQ(find_device(driver, 3).index, 0);
}

TEST(DeviceChoiceTest, find_without_a_gpu_says_why_and_what_hides_it) {
  cuda::FakeDriver driver;
  driver.devices = 0;
  driver.why_none = "the driver shows no GPU to this process";
  setenv("CUDA_VISIBLE_DEVICES", "9", 1);

  const DeviceFinding finding = find_device(driver, 0);
  unsetenv("CUDA_VISIBLE_DEVICES");

  EXPECT_EQ(finding.problem,
            "the driver shows no GPU to this process (CUDA_VISIBLE_DEVICES is '9')");
}

TEST(DeviceChoiceTest, find_of_a_gpu_that_another_process_owns_says_so) {
  cuda::FakeDriver driver;
  driver.set_device_failure = "cudaSetDevice: exclusive-process device is in use";

  const DeviceFinding finding = find_device(driver, 0);

  EXPECT_EQ(finding.problem,
            "GPU 0 cannot be used: cudaSetDevice: exclusive-process device is in use");
}

TEST(DeviceChoiceTest, find_with_gpus_hidden_on_purpose_expects_none) {
  cuda::FakeDriver driver;
  driver.devices = 0;
  driver.none_visible = true;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);

  const DeviceFinding hidden = find_device(driver, 0);
  unsetenv("CUDA_VISIBLE_DEVICES");

  EXPECT_FALSE(hidden.expected);
  EXPECT_FALSE(hidden.named_in_vain);
}

TEST(DeviceChoiceTest, index_that_is_not_there_is_refused_also_when_nothing_was_asked) {
  cuda::FakeDriver driver;
  driver.devices = 0;
  driver.none_visible = true;
  driver.why_none = "the driver shows no GPU to this process";
  setenv("CUDA_VISIBLE_DEVICES", "9", 1);
  const std::vector findings = {find_device(driver, 0)};
  unsetenv("CUDA_VISIBLE_DEVICES");
  const std::vector exchanged = {DeviceFinding::from_text(findings[0].to_text())};

  const auto decision =
      decide_device(DeviceWish::kAuto, exchanged, topology_of({"a"}), GpuSharing::kRefused);

  EXPECT_THAT(decision.refusal, HasSubstr("rank 0 on a has no usable GPU"));
  EXPECT_THAT(decision.refusal, HasSubstr("CUDA_VISIBLE_DEVICES is '9'"));
  EXPECT_THAT(decision.refusal, HasSubstr("name a GPU that is there"));
}

TEST(DeviceChoiceTest, findings_survive_the_exchange) {
  DeviceFinding finding = found(1, "Fake 200 SXM");
  finding.version = "driver for CUDA 13.0, runtime 13.0";
  finding.memory = {.free_bytes = 7, .total_bytes = 9};

  const DeviceFinding back = DeviceFinding::from_text(finding.to_text());

  EXPECT_EQ(back.to_text(), finding.to_text());
  EXPECT_EQ(back.name, "Fake 200 SXM");
  EXPECT_EQ(back.memory.total_bytes, 9u);
  EXPECT_TRUE(back.usable());
  EXPECT_FALSE(DeviceFinding::from_text(none("no driver").to_text()).usable());
}

TEST(DeviceChoiceTest, decide_with_a_gpu_for_each_rank_uses_them) {
  const std::vector findings = {found(0), found(1)};

  const auto decision =
      decide_device(DeviceWish::kAuto, findings, topology_of({"a", "a"}), GpuSharing::kRefused);

  EXPECT_TRUE(decision.on_gpu);
  EXPECT_EQ(decision.refusal, "");
  EXPECT_TRUE(decision.warnings.empty());
}

TEST(DeviceChoiceTest, decide_for_the_processor_ignores_gpus) {
  const std::vector findings = {found(0)};

  EXPECT_FALSE(
      decide_device(DeviceWish::kCpu, findings, topology_of({"a"}), GpuSharing::kRefused).on_gpu);
}

TEST(DeviceChoiceTest, decide_without_any_gpu_falls_back_with_one_warning_and_the_reason) {
  const std::vector findings = {none("the driver is too old"), none("the driver is too old")};

  const auto decision =
      decide_device(DeviceWish::kAuto, findings, topology_of({"a", "a"}), GpuSharing::kRefused);

  EXPECT_FALSE(decision.on_gpu);
  EXPECT_EQ(decision.refusal, "");
  EXPECT_THAT(decision.warnings, ElementsAre(HasSubstr("no GPU is used: the driver is too old")));
}

TEST(DeviceChoiceTest, decide_on_a_machine_without_a_driver_falls_back_in_silence) {
  const std::vector findings = {DeviceFinding{.problem = "no NVIDIA driver is loaded"}};

  const auto decision =
      decide_device(DeviceWish::kAuto, findings, topology_of({"a"}), GpuSharing::kRefused);

  EXPECT_FALSE(decision.on_gpu);
  EXPECT_TRUE(decision.warnings.empty());
}

TEST(DeviceChoiceTest, decide_for_cuda_without_a_gpu_refuses_and_names_rank_host_and_reason) {
  const std::vector findings = {found(0), none("no NVIDIA driver is loaded on this machine")};

  const auto decision =
      decide_device(DeviceWish::kCuda, findings, topology_of({"a", "b"}), GpuSharing::kRefused);

  EXPECT_THAT(decision.refusal, HasSubstr("rank 1 on b has no usable GPU: no NVIDIA driver"));
}

TEST(DeviceChoiceTest, decide_with_one_rank_without_a_gpu_refuses_also_when_nothing_was_asked) {
  const std::vector findings = {found(0), none("no GPU")};

  const auto decision =
      decide_device(DeviceWish::kAuto, findings, topology_of({"a", "b"}), GpuSharing::kRefused);

  EXPECT_THAT(decision.refusal, HasSubstr("rank 1 on b"));
  EXPECT_THAT(decision.refusal, HasSubstr("other ranks have one"));
}

TEST(DeviceChoiceTest, decide_refuses_more_ranks_than_gpus_with_a_hint) {
  const std::vector findings = {found(0), found(1), found(0)};

  const auto decision = decide_device(DeviceWish::kAuto, findings, topology_of({"a", "a", "a"}),
                                      GpuSharing::kRefused);

  EXPECT_THAT(decision.refusal, HasSubstr("ranks 0 and 2 on a would share GPU 0 (Fake 100), of 2"));
  EXPECT_THAT(decision.refusal, HasSubstr("one rank a GPU (-np)"));
}

TEST(DeviceChoiceTest, decide_allows_sharing_when_told_and_equal_gpus_of_other_hosts) {
  const std::vector findings = {found(0), found(0)};

  EXPECT_TRUE(
      decide_device(DeviceWish::kCuda, findings, topology_of({"a", "a"}), GpuSharing::kAllowed)
          .on_gpu);
  EXPECT_TRUE(
      decide_device(DeviceWish::kCuda, findings, topology_of({"a", "b"}), GpuSharing::kRefused)
          .on_gpu);
}

TEST(DeviceChoiceTest, decide_warns_about_mixed_models_by_rank) {
  const std::vector findings = {found(0), found(1, "Fake 50"), found(1)};

  const auto decision = decide_device(DeviceWish::kAuto, findings, topology_of({"a", "a", "b"}),
                                      GpuSharing::kRefused);

  EXPECT_TRUE(decision.on_gpu);
  EXPECT_THAT(decision.warnings,
              ElementsAre(HasSubstr("Fake 100 on rank 0, 2; Fake 50 on rank 1")));
}

TEST(DeviceChoiceTest, memory_shortage_says_need_and_have) {
  const cuda::DeviceMemory memory{.free_bytes = std::size_t{3} << 30,
                                  .total_bytes = std::size_t{80} << 30};

  EXPECT_FALSE(memory_shortage(memory, std::size_t{1} << 30).has_value());
  const auto text = memory_shortage(memory, std::size_t{4} << 30);
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("need 4096 MiB"));
  EXPECT_THAT(*text, HasSubstr("3072 of 81920 MiB are free"));
}

TEST(SocketInterfacesTest, problem_follows_the_rules_of_nccl) {
  const std::vector<std::string> there = {"lo", "eth0", "ib0"};

  for (const char* good : {"eth", "eth0", "=ib0", "^lo", "^lo,docker", "wlan,ib", "=eth0,lo", ""}) {
    EXPECT_EQ(socket_interface_problem(good, there), "") << good;
  }
  EXPECT_EQ(socket_interface_problem(nullptr, there), "");
  for (const char* bad : {"wlan", "=eth", "^lo,eth,ib", "^=lo,eth0,ib0"}) {
    EXPECT_THAT(socket_interface_problem(bad, there), HasSubstr("there are: lo, eth0, ib0")) << bad;
  }
}

TEST(SocketInterfacesTest, this_machine_has_a_loopback) {
  EXPECT_THAT(interface_names(), testing::Contains("lo"));
}

}  // namespace
}  // namespace sidestream::comm
