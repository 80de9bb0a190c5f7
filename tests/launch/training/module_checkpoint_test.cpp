// A module that is not the trainer's is saved, restored by any number of ranks, and trained on as
// if nothing had happened.
#include "launch/trainer/module_checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/error.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "parallel/module_buffers.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::launch {
namespace {

using core::ScratchFolder;
using parallel::StateSharing;
using test::message_of;
using test::run_ranks;
using test::run_ranks_collecting;
using test::ThreadCommunicator;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kSamples = 24;  // a step, over all ranks

// What the trainer's model has none of: a frozen parameter, statistics that the forward writes, and
// buffers of several types, one of which is a single number seen as many.
struct Network : torch::nn::Module {
  explicit Network(int rank, std::int64_t hidden = 19) {
    torch::manual_seed(static_cast<std::uint64_t>(100 + rank));
    input = register_module("input", torch::nn::Linear(7, hidden));
    norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    output = register_module("output", torch::nn::Linear(hidden, 3));
    frozen = register_parameter("frozen", torch::randn({3}), false);
    mask = register_buffer("mask", torch::rand({3}) > 0.5);
    seen = register_buffer("seen", torch::tensor({rank, 2 * rank}, torch::kInt64));
    wide = register_buffer("wide", torch::tensor({0.5 + rank}, torch::kFloat64).expand({4}));
    bias = register_buffer("bias", torch::full({3}, -std::numeric_limits<float>::infinity()));
  }
  torch::Tensor forward(const torch::Tensor& inputs_bf) {
    return output(torch::tanh(norm(input(inputs_bf)))) + frozen * mask;
  }
  torch::nn::Linear input{nullptr}, output{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor frozen, mask, seen, wide, bias;
};

void train(Network& network, parallel::DataParallel& replicas, ThreadCommunicator& communicator,
           int steps) {
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
std::vector<char> bits_of(const Network& network, parallel::DataParallel& replicas) {
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

class ModuleCheckpointTest : public testing::TestWithParam<StateSharing> {
 protected:
  static parallel::DataParallelConfig config(StateSharing sharing = StateSharing::kOff) {
    return {.bucket_mb = test::kSmallBuckets, .state_sharing = sharing};
  }
  std::filesystem::path checkpoints() const { return folder.path() / "checkpoints"; }

  // Trains five steps with saves after the second and the fourth.
  void make_checkpoints() const {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      Network network(communicator.rank());
      parallel::DataParallel replicas(network, communicator, config());
      ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
      for (const int step : {2, 4}) {
        train(network, replicas, communicator, step);
        checkpoint.save({{"sample", step * kSamples}});
      }
      train(network, replicas, communicator, 5);
    });
  }

  ScratchFolder folder;
};

TEST_P(ModuleCheckpointTest, run_that_was_interrupted_has_the_bits_of_one_that_was_not) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network whole(communicator.rank());
    parallel::DataParallel of_whole(whole, communicator, config(GetParam()));
    {
      ModuleCheckpoint checkpoint(folder.path(), communicator, whole, of_whole);
      train(whole, of_whole, communicator, 3);
      // Each rank has other running statistics, and rank 0's are saved.
      parallel::broadcast_buffers(whole, communicator);
      checkpoint.save({{"sample", 72}});
    }
    train(whole, of_whole, communicator, 6);

    Network rest(communicator.rank() + 5);
    parallel::DataParallel of_rest(rest, communicator, config(GetParam()));
    ModuleCheckpoint checkpoint(folder.path(), communicator, rest, of_rest);
    const auto program = checkpoint.restore();

    ASSERT_TRUE(program);
    EXPECT_EQ(*program, (nlohmann::json{{"sample", 72}}));
    EXPECT_EQ(of_rest.steps_taken(), 3);
    train(rest, of_rest, communicator, 6);
    EXPECT_EQ(bits_of(rest, of_rest), bits_of(whole, of_whole));
    EXPECT_TRUE(std::isinf(rest.bias[0].item<float>()));
  });
}

INSTANTIATE_TEST_SUITE_P(Sharing, ModuleCheckpointTest,
                         testing::Values(StateSharing::kOff, StateSharing::kSharded),
                         [](const auto& instance) {
                           return instance.param == StateSharing::kOff ? "whole" : "sharded";
                         });

TEST_F(ModuleCheckpointTest, any_number_of_ranks_goes_on) {
  make_checkpoints();
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](ThreadCommunicator& communicator) {
      Network network(communicator.rank());
      parallel::DataParallel replicas(network, communicator, config());
      ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);

      const auto program = checkpoint.restore();

      ASSERT_TRUE(program);
      EXPECT_EQ(*program, (nlohmann::json{{"sample", 96}}));
      EXPECT_EQ(replicas.steps_taken(), 4);
    });
  }
}

TEST_F(ModuleCheckpointTest, folder_without_a_checkpoint_restores_nothing) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());

    EXPECT_FALSE(ModuleCheckpoint(folder.path(), communicator, network, replicas).restore());
    EXPECT_EQ(replicas.steps_taken(), 0);
  });
}

TEST_F(ModuleCheckpointTest, saved_without_a_word_of_the_program_is_null) {
  run_ranks(1, [&](ThreadCommunicator& communicator) {
    Network network(0);
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    checkpoint.save();

    const auto program = checkpoint.restore();

    ASSERT_TRUE(program);
    EXPECT_TRUE(program->is_null());
  });
}

TEST_F(ModuleCheckpointTest, only_the_newest_are_kept) {
  run_ranks(1, [&](ThreadCommunicator& communicator) {
    Network network(0);
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas, {.keep = 1});
    for (const int step : {1, 2, 3}) {
      train(network, replicas, communicator, step);
      checkpoint.save();
    }
  });

  EXPECT_EQ(checkpoint::CheckpointStore(checkpoints()).steps(), std::vector<std::int64_t>{3});
}

TEST_F(ModuleCheckpointTest, damaged_one_is_set_aside_for_the_one_before) {
  make_checkpoints();
  std::ofstream(checkpoints() / "step_00000004/model.safetensors", std::ios::app) << "more";

  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);

    ASSERT_TRUE(checkpoint.restore());
    EXPECT_EQ(replicas.steps_taken(), 2);
  });

  EXPECT_EQ(checkpoint::CheckpointStore(checkpoints()).steps(), std::vector<std::int64_t>{2});
}

// What each rank says when it restores into this network with this configuration.
std::string refusal(const std::filesystem::path& folder, std::int64_t hidden,
                    const parallel::DataParallelConfig& config) {
  const auto errors = run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank(), hidden);
    parallel::DataParallel replicas(network, communicator, config);
    ModuleCheckpoint(folder, communicator, network, replicas).restore();
  });
  EXPECT_EQ(message_of(errors[0]), message_of(errors[1]));
  return message_of(errors[0]);
}

TEST_F(ModuleCheckpointTest, without_a_whole_one_restore_refuses_to_start_over) {
  make_checkpoints();
  for (const char* name : {"step_00000002", "step_00000004"})
    std::ofstream(checkpoints() / name / "model.safetensors", std::ios::app) << "more";

  EXPECT_THAT(refusal(folder.path(), 19, config()),
              AllOf(HasSubstr("none of 2 checkpoints can be used"), HasSubstr("step_00000004")));
}

TEST_F(ModuleCheckpointTest, other_module_is_refused_by_its_fields) {
  make_checkpoints();

  EXPECT_THAT(refusal(folder.path(), 18, config()),
              AllOf(HasSubstr("parameters/input.weight"), HasSubstr("[19, 7]"),
                    HasSubstr("[18, 7]"), HasSubstr("constants/norm.running_mean")));
}

TEST_F(ModuleCheckpointTest, other_optimizer_is_refused_by_its_name) {
  make_checkpoints();
  parallel::DataParallelConfig sgd = config();
  sgd.optimizer.algorithm = parallel::OptimizerAlgorithm::kSgd;

  EXPECT_THAT(refusal(folder.path(), 19, sgd),
              AllOf(HasSubstr("the optimizer sgd"), HasSubstr("that of adamw")));
}

TEST_F(ModuleCheckpointTest, folder_that_another_one_holds_is_refused) {
  run_ranks(1, [&](ThreadCommunicator& communicator) {
    Network network(0);
    parallel::DataParallel replicas(network, communicator, config());
    const ModuleCheckpoint holder(folder.path(), communicator, network, replicas);

    EXPECT_THROW(ModuleCheckpoint(folder.path(), communicator, network, replicas),
                 core::AgreedError);
  });
}

TEST_F(ModuleCheckpointTest, buffer_of_a_type_that_files_do_not_have_is_named) {
  const auto errors = run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    network.register_buffer("phases", torch::zeros({2}, torch::kComplexFloat));
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint(folder.path(), communicator, network, replicas);
  });

  for (const auto& error : errors)
    EXPECT_THAT(message_of(error), AllOf(HasSubstr("phases"), HasSubstr("ComplexFloat")));
}

}  // namespace
}  // namespace sidestream::launch
