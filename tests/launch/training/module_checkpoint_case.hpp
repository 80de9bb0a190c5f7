// A module that is not the trainer's, its training, and checkpoints of it: what the tests of these
// begin with.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <vector>

#include <torch/nn/modules/batchnorm.h>

#include "launch/trainer/module_checkpoint.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::launch {
using parallel::StateSharing;
using test::ThreadCommunicator;

inline constexpr int kSamples = 24;  // a step, over all ranks

// What the trainer's model has none of: a frozen parameter, statistics that the forward writes, and
// buffers of several types, one of which is a single number seen as many.
struct Network : torch::nn::Module {
  explicit Network(int rank, std::int64_t hidden = 19) {
    torch::manual_seed(static_cast<std::uint64_t>(100 + rank));
    input = register_module("input", torch::nn::Linear(7, hidden));
    norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    output = register_module("output", torch::nn::Linear(hidden, 3));
    frozen = register_parameter("frozen", torch::randn({3}), false);
    mask = register_buffer("mask", torch::tensor({rank % 2 == 0, rank % 2 == 1, true}));
    seen = register_buffer("seen", torch::tensor({rank, 2 * rank}, torch::kInt64));
    wide = register_buffer("wide", torch::tensor({0.5 + rank}, torch::kFloat64).expand({4}));
    none = register_buffer("none", torch::empty({0, 4}));
    bias = register_buffer("bias",
                           torch::tensor({-std::numeric_limits<float>::infinity(), 1.f + rank}));
  }
  torch::Tensor forward(const torch::Tensor& inputs_bf) {
    return output(torch::tanh(norm(input(inputs_bf)))) + frozen * mask;
  }
  torch::nn::Linear input{nullptr}, output{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor frozen, mask, seen, wide, none, bias;
};

inline void train(Network& network, parallel::DataParallel& replicas,
                  ThreadCommunicator& communicator, int steps) {
  const int mine = kSamples / communicator.size();
  while (replicas.steps_taken() < steps) {
    const std::int64_t first = replicas.steps_taken() * kSamples + communicator.rank() * mine;
    const test::ToyBatch batch = test::make_toy_batch(first, mine);
    replicas.begin_micro_step(0);
    torch::mse_loss(network.forward(batch.inputs_bf), batch.targets_bo).backward();
    replicas.finish_backward();
    replicas.update(1e-2);
  }
}

// The bits of everything that a module holds, and of the optimizer's state.
inline std::vector<char> bits_of(const Network& network, parallel::DataParallel& replicas) {
  std::vector<char> bits;
  const auto add = [&](const torch::Tensor& tensor) {
    const torch::Tensor dense = tensor.contiguous();
    const auto* data = static_cast<const char*>(dense.const_data_ptr());
    bits.insert(bits.end(), data, data + dense.nbytes());
  };
  for (const auto& item : network.named_buffers()) add(item.value());
  add(network.frozen);
  for (const float value : test::state_of(replicas))
    bits.insert(bits.end(), reinterpret_cast<const char*>(&value),
                reinterpret_cast<const char*>(&value) + sizeof value);
  return bits;
}

inline parallel::DataParallelConfig config(StateSharing sharing = StateSharing::kOff) {
  return {.bucket_mb = test::kSmallBuckets, .state_sharing = sharing};
}

inline parallel::DataParallelConfig with_sgd(double momentum) {
  parallel::DataParallelConfig result = config();
  result.optimizer.algorithm = parallel::OptimizerAlgorithm::kSgd;
  result.optimizer.momentum = momentum;
  return result;
}

class ModuleCheckpointTest : public testing::Test {
 protected:
  std::filesystem::path checkpoints() const { return folder.path() / "checkpoints"; }

  // Trains five steps with saves after the second and the fourth; the bits of the latter.
  std::vector<char> make_checkpoints() const {
    std::vector<char> saved;
    test::run_ranks(2, [&](ThreadCommunicator& communicator) {
      Network network(communicator.rank());
      parallel::DataParallel replicas(network, communicator, config());
      ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
      for (const int step : {2, 4}) {
        train(network, replicas, communicator, step);
        checkpoint.save({{"sample", step * kSamples}});
      }
      if (communicator.rank() == 0) saved = bits_of(network, replicas);
      train(network, replicas, communicator, 5);
    });
    return saved;
  }

  core::ScratchFolder folder;
};

}  // namespace sidestream::launch
