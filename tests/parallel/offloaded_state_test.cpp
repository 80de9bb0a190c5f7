// Optimizer state in the memory of a device's host: the same bits as on the device, whatever the
// slices, and whenever the copies are done.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>

#include "comm/single_communicator.hpp"
#include "core/base/error.hpp"
#include "tests/core/base/late_copies.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using core::CopyEngine;
using core::DType;
using core::LateCopies;
using parallel::DataParallel;
using parallel::OptimizerAlgorithm;
using parallel::StateResidence;
using parallel::StateSharing;

constexpr std::int64_t kWide = 6007;  // several pieces in the large weights, the last ones odd
constexpr std::size_t kEveryPiece = 1;
constexpr std::size_t kSomePieces = 40000;
constexpr std::size_t kOneSlice = std::size_t{1} << 30;

using Queues = std::set<CopyEngine::Queue>;
const std::array<Queues, 4> kPaces = {
    Queues{}, Queues{CopyEngine::Queue::kToDevice}, Queues{CopyEngine::Queue::kToHost},
    Queues{CopyEngine::Queue::kToDevice, CopyEngine::Queue::kToHost}};

ToyOptions on_device(ToyOptions options) {
  options.tools.kernels = std::make_shared<optim::HostKernels>();
  return options;
}

struct Way {
  std::size_t slice_elements = kSomePieces;
  Queues eager = {};
};

ToyOptions offloaded(const ToyOptions& options, const Way& way) {
  ToyOptions result = on_device(options);
  result.config.optimizer.state_residence = StateResidence::kHost;
  result.tools.state_slice_elements = way.slice_elements;
  result.tools.make_copies = [way] {
    auto copies = std::make_shared<LateCopies>();
    copies->eager = way.eager;
    return copies;
  };
  return result;
}

// Master weights and moments after some steps.
std::vector<float> trained(comm::Communicator& communicator, const ToyOptions& options) {
  ToyNet net(communicator.rank(), options.hidden);
  DataParallel replicas(net, communicator, options.config, options.tools);
  for (int step = 1; step <= options.steps; ++step)
    run_toy_step(net, replicas, communicator, options, step);
  replicas.check_replicas();
  return state_of(replicas);
}

void expect_same_bits(const ToyOptions& options) {
  comm::SingleCommunicator alone;
  const std::vector<float> expected = trained(alone, on_device(options));
  for (const std::size_t slice : {kEveryPiece, kSomePieces, kOneSlice}) {
    for (const Queues& eager : kPaces) {
      SCOPED_TRACE(testing::Message() << "slices of " << slice << ", eager: " << eager.size());
      EXPECT_EQ(trained(alone, offloaded(options, {slice, eager})), expected);
    }
  }
}

ToyOptions toy(parallel::DataParallelConfig config) {
  return {.steps = 4, .hidden = kWide, .config = config};
}

TEST(OffloadedStateTest, adamw_ofAnyTypes_hasTheSameBits) {
  for (const DType weights : {DType::kFloat32, DType::kBFloat16}) {
    for (const DType moments : {DType::kFloat32, DType::kBFloat16}) {
      expect_same_bits(toy(
          {.parameter_dtype = weights, .optimizer = {.state_dtype = moments, .rounding_seed = 7}}));
    }
  }
}

TEST(OffloadedStateTest, sgd_withAndWithoutMomentum_hasTheSameBits) {
  for (const DType weights : {DType::kFloat32, DType::kBFloat16}) {
    for (const double momentum : {0.0, 0.9}) {
      expect_same_bits(toy({.parameter_dtype = weights,
                            .optimizer = {.algorithm = OptimizerAlgorithm::kSgd,
                                          .momentum = momentum,
                                          .state_dtype = DType::kBFloat16,
                                          .rounding_seed = 7}}));
    }
  }
}

TEST(OffloadedStateTest, clippedAndAccumulatedSteps_haveTheSameBits) {
  expect_same_bits(toy({.bucket_mb = 0.1,
                        .parameter_dtype = DType::kBFloat16,
                        .reduce_dtype = DType::kFloat32,
                        .grad_accumulation = 2,
                        .optimizer = {.grad_clip = 1e-2}}));
}

// The third step's update is left out: its slices come and go as they are.
TEST(OffloadedStateTest, halfPrecisionWithALossScale_hasTheSameBits) {
  for (const auto algorithm : {OptimizerAlgorithm::kAdamW, OptimizerAlgorithm::kSgd}) {
    for (const DType reduce : {DType::kFloat16, DType::kFloat32}) {
      ToyOptions options =
          toy({.parameter_dtype = DType::kFloat16,
               .reduce_dtype = reduce,
               .optimizer = {.algorithm = algorithm},
               .loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 1024, .interval = 2}});
      options.overflow_step = 3;
      expect_same_bits(options);
    }
  }
}

TEST(OffloadedStateTest, smallParameters_shareASlice) {
  expect_same_bits({.config = {.bucket_mb = 1e-4, .parameter_dtype = DType::kBFloat16}});
}

TEST(OffloadedStateTest, slicesOfRanks_haveTheSameBits) {
  for (const DType weights : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const int ranks : {1, 2, 3}) {
      std::map<std::string, std::vector<float>> states;
      const auto run = [&](const std::string& name, const ToyOptions& options) {
        run_ranks(ranks, [&](ThreadCommunicator& communicator) {
          const auto mine = trained(communicator, options);
          if (communicator.rank() == 0) states[name] = mine;
        });
      };
      const ToyOptions options = toy({.bucket_mb = 0.1,
                                      .parameter_dtype = weights,
                                      .state_sharing = StateSharing::kSharded,
                                      .optimizer = {.state_dtype = DType::kBFloat16}});
      run("device", on_device(options));
      for (const std::size_t slice : {kEveryPiece, kSomePieces, kOneSlice}) {
        run("host", offloaded(options, {slice, {}}));
        EXPECT_EQ(states["host"], states["device"]) << ranks << " ranks, slices of " << slice;
      }
    }
  }
}

TEST(OffloadedStateTest, normThatIsNotFinite_leavesStateAndNamesTheStep) {
  comm::SingleCommunicator alone;
  const ToyOptions options =
      offloaded(toy({.parameter_dtype = DType::kBFloat16}), {kSomePieces, {}});
  ToyNet net(0, kWide);
  DataParallel replicas(net, alone, options.config, options.tools);
  run_toy_step(net, replicas, alone, options, 1);
  const auto before = state_of(replicas);

  replicas.begin_micro_step(0);
  (toy_loss(net, make_toy_batch(0, 12)) * std::numeric_limits<float>::infinity()).backward();
  replicas.finish_backward();
  replicas.update(0.1);
  run_toy_step(net, replicas, alone, options, 3);

  EXPECT_EQ(replicas.first_bad_step(), 2);
  EXPECT_EQ(state_of(replicas), before);
}

TEST(OffloadedStateTest, anotherOrderOfBuckets_movesNoNumber) {
  for (const int ranks : {1, 3}) {
    for (const DType weights : {DType::kFloat32, DType::kBFloat16}) {
      std::map<StateResidence, std::vector<float>> states;
      for (const bool on_host : {false, true}) {
        const ToyOptions plain = toy({.bucket_mb = 0.1,
                                      .parameter_dtype = weights,
                                      .state_sharing = StateSharing::kSharded});
        const ToyOptions options = on_host ? offloaded(plain, {}) : on_device(plain);
        run_ranks(ranks, [&](ThreadCommunicator& communicator) {
          ToyNet net(0, kWide);
          DataParallel replicas(net, communicator, options.config, options.tools);
          for (int step = 1; step <= 3; ++step)
            run_toy_step(net, replicas, communicator, options, step);
          std::vector<std::string> order = replicas.bucket_order();
          std::sort(order.begin(), order.end());
          replicas.set_bucket_order(order);
          for (int step = 4; step <= 5; ++step)
            run_toy_step(net, replicas, communicator, options, step);
          const auto mine = state_of(replicas);
          if (communicator.rank() == 0) states[options.config.optimizer.state_residence] = mine;
        });
      }
      EXPECT_EQ(states[StateResidence::kHost], states[StateResidence::kDevice]) << ranks;
    }
  }
}

// What a checkpoint does: the state is read after three steps, and three more follow elsewhere.
TEST(OffloadedStateTest, stateThatWasRead_goesOnInEitherPlace) {
  comm::SingleCommunicator alone;
  const ToyOptions options =
      toy({.parameter_dtype = DType::kBFloat16, .optimizer = {.state_dtype = DType::kBFloat16}});
  ToyOptions whole = on_device(options);
  whole.steps = 6;
  const std::vector<float> expected = trained(alone, whole);
  for (const bool from_host : {false, true}) {
    for (const bool to_host : {false, true}) {
      const ToyOptions first = from_host ? offloaded(options, {}) : on_device(options);
      const ToyOptions second = to_host ? offloaded(options, {}) : on_device(options);
      ToyNet net(0, kWide), other(5, kWide);
      DataParallel source(net, alone, first.config, first.tools);
      for (int step = 1; step <= 3; ++step) run_toy_step(net, source, alone, first, step);
      DataParallel target(other, alone, second.config, second.tools);
      run_toy_step(other, target, alone, second, 1);  // what it has learned is to be forgotten

      const auto stored = source.states();
      const auto places = target.states();
      for (std::size_t i = 0; i < stored.size(); ++i) {
        torch::Tensor(places[i].master).detach().copy_(stored[i].master.detach());
        for (std::size_t m = 0; m < stored[i].moments.size(); ++m)
          torch::Tensor(places[i].moments[m].tensor).copy_(stored[i].moments[m].tensor);
      }
      target.refresh_parameters();
      target.set_steps_taken(3);
      for (int step = 4; step <= 6; ++step) run_toy_step(other, target, alone, second, step);

      EXPECT_EQ(state_of(target), expected) << from_host << to_host;
    }
  }
}

TEST(OffloadedStateTest, hostMemory_isThatOfMastersAndMoments) {
  comm::SingleCommunicator alone;
  for (const DType weights : {DType::kFloat32, DType::kBFloat16}) {
    const auto copies = std::make_shared<LateCopies>();
    ToyOptions options = offloaded(toy({.parameter_dtype = weights}), {});
    options.tools.make_copies = [&] { return copies; };
    {
      ToyNet net(0, kWide);
      const DataParallel replicas(net, alone, options.config, options.tools);
      std::size_t bytes = 0;
      for (const auto& state : replicas.states()) {
        if (weights == DType::kBFloat16) bytes += state.master.nbytes();
        for (const auto& moment : state.moments) bytes += moment.tensor.nbytes();
      }
      EXPECT_GE(copies->host_bytes_alive(), bytes);
      EXPECT_LT(copies->host_bytes_alive(), bytes + 16 * 64 * 3);  // padding
    }
    EXPECT_EQ(copies->host_bytes_alive(), 0u);
    EXPECT_EQ(copies->waiting(), 0u);
  }
}

TEST(OffloadedStateTest, end_leavesNoCopyBehind) {
  comm::SingleCommunicator alone;
  const auto copies = std::make_shared<LateCopies>();
  ToyOptions options = offloaded(toy({.parameter_dtype = DType::kBFloat16}), {});
  options.tools.make_copies = [&] { return copies; };
  {
    ToyNet net(0, kWide);
    DataParallel replicas(net, alone, options.config, options.tools);
    run_toy_step(net, replicas, alone, options, 1);
    EXPECT_GT(copies->waiting(), 0u) << "a step waits for nothing";
  }
  EXPECT_EQ(copies->waiting(), 0u);
}

TEST(OffloadedStateTest, failingCopy_endsTheStepAndLeavesNothingBehind) {
  comm::SingleCommunicator alone;
  for (const int good : {0, 1, 4, 7}) {
    const auto copies = std::make_shared<LateCopies>();
    ToyOptions options = offloaded(toy({.parameter_dtype = DType::kBFloat16}), {});
    options.tools.make_copies = [&] { return copies; };
    {
      ToyNet net(0, kWide);
      DataParallel replicas(net, alone, options.config, options.tools);
      copies->fails_after = good;
      EXPECT_THROW(run_toy_step(net, replicas, alone, options, 1), core::Error);
    }
    EXPECT_EQ(copies->waiting(), 0u);
  }
}

TEST(OffloadedStateTest, hostRanks_areRefused) {
  comm::SingleCommunicator alone;
  ToyNet net(0);

  EXPECT_THROW(DataParallel(net, alone, {.optimizer = {.state_residence = StateResidence::kHost}}),
               core::ConfigError);
}

}  // namespace
}  // namespace sidestream::test
