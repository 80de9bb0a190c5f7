// What state in slices takes of the memory of each rank, at its start and while it is saved.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/model/tensor_meter.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::DataParallelConfig;
using parallel::StateSharing;

std::int64_t elements_of(const ToyNet& net) {
  std::int64_t elements = 0;
  for (const torch::Tensor& parameter : net.parameters()) elements += parameter.numel();
  return elements;
}

// Weights in bf16, and a fourth of the fp32 master weights and of two moments, beside the module's
// own. What the module gives back does not count: it was there before.
TEST(ShardedMemoryTest, start_makesNoWholeMasterWeights) {
  constexpr int kRanks = 4;
  run_ranks(kRanks, [](ThreadCommunicator& communicator) {
    ToyNet net(communicator.rank(), 200'000);
    const std::int64_t elements = elements_of(net);
    std::unique_ptr<DataParallel> replicas;

    const std::int64_t most = peak_bytes([&] {
      replicas = std::make_unique<DataParallel>(
          net, communicator,
          DataParallelConfig{.parameter_dtype = core::DType::kBFloat16,
                             .state_sharing = StateSharing::kSharded});
    });

    EXPECT_GE(most, elements * (2 + 12 / kRanks));
    EXPECT_LT(most, elements * (2 + 12 / kRanks) * 5 / 4) << "a fourth for padding";
  });
}

// Buckets get another order: state moves slice by slice, weights through the gradients' memory.
TEST(ShardedMemoryTest, setBucketOrder_makesNoSecondCopyOfTheWeights) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    const auto meter = std::make_shared<TensorMeter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    ToyNet net(0, 1'000'000);
    DataParallel replicas(net, communicator, {.state_sharing = StateSharing::kSharded});
    std::vector<std::string> order = replicas.bucket_order();
    std::sort(order.begin(), order.end());
    const std::int64_t before = meter->peak = meter->now;

    replicas.set_bucket_order(order);

    EXPECT_LT(meter->peak - before, elements_of(net) * 4);
  });
}

TEST(ShardedMemoryTest, gatherStates_takesLittleOfARankThatWritesNothing) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    ToyNet net(0, 1'000'000);
    DataParallel replicas(net, communicator, {.state_sharing = StateSharing::kSharded});

    const std::int64_t most = peak_bytes([&] {
      replicas.gather_states(
          [](const std::string&, const std::string&) { return torch::Tensor(); });
    });

    EXPECT_GT(most, 0);
    EXPECT_LE(most, static_cast<std::int64_t>(parallel::kGatheredBytes) + 4096);
  });
}

}  // namespace
}  // namespace sidestream::test
