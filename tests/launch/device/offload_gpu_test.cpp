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
  std::int64_t peak_bytes = 0;  // of LibTorch's memory on the device
};

Trained trained(Words flags, const std::string& offload) {
  flags.insert(flags.end(), {"--deterministic", "--offload", offload, "--recompute", "blocks"});
  GpuSteps gpu(gpu_options(flags));
  gpu.run(1, 2);  // buckets have their order
  c10::DeviceAllocator* memory = c10::getDeviceAllocator(gpu.device.device().type());
  memory->resetPeakStats(gpu.device.device().index());
  gpu.run(3, kSteps);
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = memory->getDeviceStats(gpu.device.device().index());
  return {.states = states_of(gpu.replicas), .peak_bytes = stats.allocated_bytes[kAll].peak};
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

const Words kDeep = {"--layers", "12", "--batch-size-per-rank", "64", "--sequence-length", "64"};

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
