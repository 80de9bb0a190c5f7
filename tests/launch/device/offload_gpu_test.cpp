// --offload on a GPU: the same bits for ten steps, and less memory. Needs a GPU, which ranks share.
#include <gtest/gtest.h>

#include <map>

#include <c10/core/CachingDeviceAllocator.h>

#include "tests/launch/device/gpu_steps.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kSteps = 10;

using Words = std::vector<std::string>;
using States = std::map<std::string, torch::Tensor>;

// Master weights and moments, whole, on the host.
States states_of(parallel::DataParallel& replicas) {
  States states;
  for (const parallel::ParameterState& state : replicas.states()) {
    std::map<std::string, torch::Tensor> kinds = {{"", state.master}};
    for (const parallel::Moment& moment : state.moments) kinds[moment.name] = moment.tensor;
    for (const auto& [kind, tensor] : kinds) {
      torch::Tensor& place = states[kind + "." + state.name];
      place = torch::empty(tensor.sizes(), torch::dtype(tensor.dtype()));
      if (!replicas.shards_state()) place.copy_(tensor.detach());
    }
  }
  if (replicas.shards_state()) {
    replicas.gather_states([&](const std::string& kind, const std::string& parameter) {
      return states.at(kind + "." + parameter);
    });
  }
  return states;
}

struct Trained {
  States states;
  std::int64_t peak_bytes = 0;  // of LibTorch's memory on the device, above what was taken before
};

c10::CachingAllocator::Stat allocated_on(const torch::Device& device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return c10::getDeviceAllocator(device.type())
      ->getDeviceStats(device.index())
      .allocated_bytes[kAll];
}

// The libraries keep a workspace for each stream that was ever used: those of earlier trainings do
// not count.
Trained trained(Words flags, const std::string& offload) {
  flags.insert(flags.end(), {"--deterministic", "--offload", offload, "--recompute", "blocks"});
  const TrainOptions options = gpu_options(flags);
  std::int64_t before = 0;
  {
    const auto communicator = make_gpu_communicator();
    before = allocated_on(DeviceSession(*communicator, options).device()).current;
  }
  GpuSteps gpu(options);
  gpu.run(1, 2);  // buckets have their order
  const torch::Device device = gpu.device.device();
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  gpu.run(3, kSteps);
  return {.states = states_of(gpu.replicas), .peak_bytes = allocated_on(device).peak - before};
}

void expect_same(const States& found, const States& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(torch::equal(found.at(name), tensor)) << name;
}

struct OffloadGpuTest : testing::TestWithParam<Words> {};

TEST_P(OffloadGpuTest, ten_steps_have_the_same_bits) {
  const Trained whole = trained(GetParam(), "none");
  for (const char* offload : {"residuals", "optimizer", "residuals,optimizer"}) {
    SCOPED_TRACE(offload);
    expect_same(trained(GetParam(), offload).states, whole.states);
  }
}

const Words kDeep = {"--layers", "12", "--batch-size-per-rank", "64", "--sequence-length", "128"};

TEST(OffloadGpuMemoryTest, inputs_of_blocks_leave_the_device) {
  EXPECT_LT(trained(kDeep, "residuals").peak_bytes, trained(kDeep, "none").peak_bytes);
}

// Twelve bytes a parameter leave, and the two buffers of 48 MiB are no larger than the state.
TEST(OffloadGpuMemoryTest, optimizer_state_leaves_the_device) {
  const Words large = {"--model", "gpt2-124m", "--precision", "bf16", "--batch-size-per-rank", "1"};
  EXPECT_LT(trained(large, "optimizer").peak_bytes,
            trained(large, "none").peak_bytes - (std::int64_t{1} << 30));
}

INSTANTIATE_TEST_SUITE_P(
    Toggles, OffloadGpuTest,
    testing::Values(Words{"--layers", "6"}, Words{"--layers", "6", "--precision", "bf16"},
                    Words{"--layers", "6", "--precision", "bf16", "--optimizer-state-dtype",
                          "bf16"},
                    Words{"--layers", "6", "--zero", "1"},
                    Words{"--layers", "6", "--precision", "bf16", "--zero", "1"},
                    Words{"--layers", "6", "--grad-accumulation", "2", "--dropout", "0.1"},
                    Words{"--layers", "6", "--algorithm", "sgd"},
                    Words{"--layers", "6", "--fused-ops", "off"}));

}  // namespace
}  // namespace sidestream::launch
