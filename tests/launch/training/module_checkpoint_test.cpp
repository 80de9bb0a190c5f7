// A module that is not the trainer's is saved, restored by any number of ranks, and trained on as
// if nothing had happened.
#include "launch/trainer/module_checkpoint.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <ostream>

#include "core/base/error.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "tests/launch/training/module_checkpoint_case.hpp"

namespace sidestream::launch {
namespace {

using core::ScratchFolder;
using test::run_ranks;

struct Configuration {
  const char* name;
  parallel::DataParallelConfig saving, restoring;
};

void PrintTo(const Configuration& configuration, std::ostream* out) { *out << configuration.name; }

std::vector<Configuration> configurations() {
  return {{"whole", config(), config()},
          {"sharded", config(StateSharing::kSharded), config(StateSharing::kSharded)},
          {"sharded_then_whole", config(StateSharing::kSharded), config()},
          {"whole_then_sharded", config(), config(StateSharing::kSharded)},
          {"momentum", with_sgd(0.9), with_sgd(0.9)},
          {"no_moments", with_sgd(0), with_sgd(0)}};
}

// The guard of a program asks nothing of it while it saves, and its peers are told what it does.
TEST(ModuleCheckpointSaveTest, is_no_part_of_a_step) {
  const ScratchFolder folder;
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    const auto heartbeat = std::make_shared<Heartbeat>(communicator);
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas,
                                {.heartbeat = heartbeat});
    train(network, replicas, communicator, 1);
    heartbeat->beat(ranges::Phase::kForward, 1);

    checkpoint.save();

    EXPECT_EQ(heartbeat->last().count, 0U);
    heartbeat->beat(ranges::Phase::kForward, 2);
    EXPECT_EQ(heartbeat->last().count, 3U);  // the save was one
  });
}

class InterruptedModuleTest : public testing::TestWithParam<Configuration> {};

TEST_P(InterruptedModuleTest, run_has_the_bits_of_one_that_was_not_interrupted) {
  const ScratchFolder folder;
  for (const int saved : {1, 3}) {
    const auto place = folder / std::to_string(saved);
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      Network whole(communicator.rank());
      parallel::DataParallel of_whole(whole, communicator, GetParam().saving);
      {
        ModuleCheckpoint checkpoint(place, communicator, whole, of_whole);
        train(whole, of_whole, communicator, saved);
        checkpoint.save({{"sample", saved * kSamples}});
      }
      train(whole, of_whole, communicator, 6);

      Network rest(communicator.rank() + 5);
      parallel::DataParallel of_rest(rest, communicator, GetParam().restoring);
      ModuleCheckpoint checkpoint(place, communicator, rest, of_rest);
      const auto program = checkpoint.restore();

      ASSERT_TRUE(program);
      EXPECT_EQ(*program, (nlohmann::json{{"sample", saved * kSamples}}));
      EXPECT_EQ(of_rest.steps_taken(), saved);
      train(rest, of_rest, communicator, 6);
      EXPECT_EQ(bits_of(rest, of_rest), bits_of(whole, of_whole));
    });
  }
}

// Moments of the steps that are taken back go with them.
TEST_P(InterruptedModuleTest, back_at_step_0_it_has_the_bits_of_one_that_never_left) {
  const ScratchFolder folder;
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, GetParam().saving);
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    checkpoint.save();
    train(network, replicas, communicator, 3);
    const auto expected = bits_of(network, replicas);
    train(network, replicas, communicator, 5);

    checkpoint.restore();

    EXPECT_EQ(replicas.steps_taken(), 0);
    train(network, replicas, communicator, 3);
    EXPECT_EQ(bits_of(network, replicas), expected);
  });
}

INSTANTIATE_TEST_SUITE_P(Configurations, InterruptedModuleTest, testing::ValuesIn(configurations()),
                         [](const auto& instance) { return instance.param.name; });

TEST_F(ModuleCheckpointTest, any_number_of_ranks_goes_on) {
  const auto saved = make_checkpoints();
  for (const int ranks : {1, 3, 5}) {
    run_ranks(ranks, [&](ThreadCommunicator& communicator) {
      Network network(communicator.rank());
      parallel::DataParallel replicas(network, communicator, config());
      ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);

      const auto program = checkpoint.restore();

      ASSERT_TRUE(program);
      EXPECT_EQ(*program, (nlohmann::json{{"sample", 96}}));
      EXPECT_EQ(replicas.steps_taken(), 4);
      EXPECT_EQ(bits_of(network, replicas), saved);
    });
  }
}

// A module in which a parameter is called as another one's moment is stored.
struct Confusing : torch::nn::Module {
  explicit Confusing(int rank) {
    weight = register_parameter("weight", torch::full({5, 3}, 0.1 + rank));
    child =
        register_module("exp_avg", torch::nn::Linear(torch::nn::LinearOptions(3, 5).bias(false)));
  }
  torch::Tensor weight;
  torch::nn::Linear child{nullptr};
};

TEST_F(ModuleCheckpointTest, names_of_weights_and_moments_do_not_meet) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Confusing saved(communicator.rank()), restored(communicator.rank() + 3);
    parallel::DataParallel of_saved(saved, communicator, config(StateSharing::kSharded));
    of_saved.begin_micro_step(0);
    (saved.weight * 2 + saved.child->weight * 3).sum().backward();
    of_saved.finish_backward();
    of_saved.update(1e-2);
    { ModuleCheckpoint(folder.path(), communicator, saved, of_saved).save(); }
    parallel::DataParallel of_restored(restored, communicator, config(StateSharing::kSharded));

    ModuleCheckpoint(folder.path(), communicator, restored, of_restored).restore();

    EXPECT_EQ(test::state_of(of_restored), test::state_of(of_saved));
  });
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

TEST_F(ModuleCheckpointTest, step_that_is_saved_again_is_replaced) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    train(network, replicas, communicator, 1);
    checkpoint.save(1);
    checkpoint.save(2);

    EXPECT_EQ(checkpoint.restore(), nlohmann::json(2));
  });
}

TEST_F(ModuleCheckpointTest, after_a_save_that_failed_the_next_one_goes) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    train(network, replicas, communicator, 1);
    torch::Tensor mean = network.norm->running_mean;
    const torch::Tensor before = mean.clone();
    mean.fill_(std::numeric_limits<float>::quiet_NaN());
    EXPECT_THROW(checkpoint.save(), core::AgreedError);
    mean.copy_(before);
    EXPECT_THROW(checkpoint.save(nlohmann::json("\xff")), core::AgreedError);

    checkpoint.save();

    EXPECT_TRUE(checkpoint.restore());
  });
  EXPECT_EQ(checkpoint::CheckpointStore(checkpoints()).steps(), std::vector<std::int64_t>{1});
}

// Truth values are kept as bytes, which are looked up anew: the tensor may have other memory now.
TEST_F(ModuleCheckpointTest, buffers_are_those_of_the_moment_of_the_save) {
  run_ranks(1, [&](ThreadCommunicator& communicator) {
    Network network(0), restored(1);
    parallel::DataParallel replicas(network, communicator, config());
    {
      ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
      network.mask.set_data(torch::tensor({false, false, true}));
      checkpoint.save();
    }
    parallel::DataParallel of_restored(restored, communicator, config());

    ModuleCheckpoint(folder.path(), communicator, restored, of_restored).restore();

    EXPECT_TRUE(restored.mask.equal(network.mask));
  });
}

}  // namespace
}  // namespace sidestream::launch
