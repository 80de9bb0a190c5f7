// What a checkpoint of a module of one's own is not made of, and not restored into: said on all
// ranks alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "launch/trainer/module_checkpoint.hpp"
#include "tests/launch/training/module_checkpoint_case.hpp"

namespace sidestream::launch {
namespace {

using test::message_of;
using test::run_ranks;
using test::run_ranks_collecting;
using testing::AllOf;
using testing::HasSubstr;

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
              AllOf(HasSubstr("none of the 2 checkpoints of"), HasSubstr("step_00000004")));
}

TEST_F(ModuleCheckpointTest, other_module_is_refused_by_its_fields) {
  make_checkpoints();

  EXPECT_THAT(refusal(folder.path(), 18, config()),
              AllOf(HasSubstr("parameters/input.weight"), HasSubstr("[19, 7]"),
                    HasSubstr("[18, 7]"), HasSubstr("constants/norm.running_mean")));
}

TEST_F(ModuleCheckpointTest, other_optimizer_is_refused_by_its_name) {
  make_checkpoints();

  EXPECT_THAT(refusal(folder.path(), 19, with_sgd(0.9)),
              AllOf(HasSubstr("the optimizer sgd"), HasSubstr("that of adamw")));
}

TEST_F(ModuleCheckpointTest, optimizer_that_keeps_other_moments_is_refused_by_one_of_them) {
  for (const double momentum : {0.0, 0.9}) {
    const auto place = folder / std::to_string(momentum);
    run_ranks(1, [&](ThreadCommunicator& communicator) {
      Network network(0);
      parallel::DataParallel replicas(network, communicator, with_sgd(momentum));
      ModuleCheckpoint checkpoint(place, communicator, network, replicas);
      train(network, replicas, communicator, 1);
      checkpoint.save();
    });

    EXPECT_THAT(refusal(place, 19, with_sgd(0.9 - momentum)),
                AllOf(HasSubstr("momentum_buffer.input.bias"),
                      HasSubstr(momentum > 0 ? "is not wanted" : "is missing")));
  }
}

// Of updates that a loss scale has left out, steps_taken() would say less than the checkpoint.
TEST_F(ModuleCheckpointTest, loss_scale_is_kept_and_not_done_without_once_it_has_left_out_updates) {
  test::ToyOptions options{.overflow_step = 2};
  options.config = config();
  options.config.parameter_dtype = core::DType::kFloat16;
  options.config.loss_scale = {.kind = optim::LossScaling::kDynamic, .scale = 4096, .interval = 4};
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    test::ToyNet net(communicator.rank()), rest(communicator.rank() + 2), plain(7);
    parallel::DataParallel replicas(net, communicator, options.config);
    for (int step = 1; step <= 3; ++step) run_toy_step(net, replicas, communicator, options, step);
    { ModuleCheckpoint(folder.path(), communicator, net, replicas).save(); }
    run_toy_step(net, replicas, communicator, options, 4);

    parallel::DataParallel of_rest(rest, communicator, options.config);
    { EXPECT_TRUE(ModuleCheckpoint(folder.path(), communicator, rest, of_rest).restore()); }
    EXPECT_EQ(of_rest.steps_taken(), 3);
    EXPECT_EQ(of_rest.loss_scale_state().left_out, 1);
    run_toy_step(rest, of_rest, communicator, options, 4);
    EXPECT_EQ(test::state_of(of_rest), test::state_of(replicas));

    parallel::DataParallel without(plain, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, plain, without);
    EXPECT_THROW(checkpoint.restore(), core::AgreedError);
  });
}

TEST_F(ModuleCheckpointTest, folder_that_another_one_holds_is_refused_on_all_ranks) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    const ModuleCheckpoint holder(folder.path(), communicator, network, replicas);

    try {
      ModuleCheckpoint(folder.path(), communicator, network, replicas);
      FAIL() << "no error";
    } catch (const core::AgreedError& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("is in use by process"), HasSubstr("choose another folder"),
                        testing::Not(HasSubstr("--run-dir"))));
    }
  });
}

TEST_F(ModuleCheckpointTest, start_that_has_not_restored_what_is_there_saves_nothing) {
  make_checkpoints();
  const auto errors = run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    train(network, replicas, communicator, 1);
    checkpoint.save();
  });

  for (const auto& error : errors) EXPECT_THAT(message_of(error), HasSubstr("call restore()"));
  EXPECT_EQ(checkpoint::CheckpointStore(checkpoints()).steps(), (std::vector<std::int64_t>{2, 4}));
}

TEST_F(ModuleCheckpointTest, inside_of_a_step_nothing_is_saved_or_restored) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    const test::ToyBatch batch = test::make_toy_batch(0, 4);
    replicas.begin_micro_step(0);
    EXPECT_THROW(checkpoint.save(), core::Error);
    torch::mse_loss(network.forward(batch.inputs_bf), batch.targets_bo).backward();
    EXPECT_THROW(checkpoint.restore(), core::Error);
    replicas.finish_backward();
    EXPECT_THROW(checkpoint.save(), core::Error);
    replicas.update(1e-2);

    checkpoint.save();

    EXPECT_TRUE(checkpoint.restore());
  });
}

TEST_F(ModuleCheckpointTest, name_that_two_tensors_have_is_refused) {
  const auto errors = run_ranks_collecting(1, [&](ThreadCommunicator& communicator) {
    Network network(0);
    network.register_buffer("frozen", torch::zeros({2}));
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint(folder.path(), communicator, network, replicas);
  });

  EXPECT_THAT(message_of(errors[0]), HasSubstr("two tensors of the module are named 'frozen'"));
}

TEST_F(ModuleCheckpointTest, folder_that_is_another_one_on_a_rank_is_refused) {
  const auto errors = run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint(folder / std::to_string(communicator.rank()), communicator, network, replicas);
  });

  for (const auto& error : errors)
    EXPECT_THAT(message_of(error), HasSubstr("ranks name different folders"));
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(ModuleCheckpointTest, what_a_program_keeps_is_refused_where_a_manifest_has_no_room_for_it) {
  run_ranks(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint checkpoint(folder.path(), communicator, network, replicas);
    const auto levels = [](int count) {
      nlohmann::json value = 1;
      for (int level = 0; level < count; ++level) value = nlohmann::json::array({value});
      return value;
    };
    const auto said = [&](const nlohmann::json& program) -> std::string {
      try {
        checkpoint.save(program);
        return "saved";
      } catch (const core::AgreedError& error) {
        return error.what();
      }
    };

    EXPECT_EQ(said(levels(30)), "saved");
    EXPECT_EQ(checkpoint.restore(), levels(30));
    EXPECT_THAT(said(levels(31)), HasSubstr("at most 30 nested levels"));
    EXPECT_THAT(said(std::string(9 << 20, 'x')), HasSubstr("at most 8388608 bytes"));
    EXPECT_THAT(said("\xff"), HasSubstr("what the program keeps in a checkpoint"));
  });
}

TEST_F(ModuleCheckpointTest, number_to_keep_is_not_negative) {
  const auto errors = run_ranks_collecting(1, [&](ThreadCommunicator& communicator) {
    Network network(0);
    parallel::DataParallel replicas(network, communicator, config());
    ModuleCheckpoint(folder.path(), communicator, network, replicas, {.keep = -3});
  });

  EXPECT_THAT(message_of(errors[0]), HasSubstr("expected 0 (all) or more, found -3"));
}

TEST_F(ModuleCheckpointTest, sparse_buffer_is_named) {
  const auto errors = run_ranks_collecting(2, [&](ThreadCommunicator& communicator) {
    Network network(communicator.rank());
    network.register_buffer("graph", torch::eye(3).to_sparse());
    parallel::DataParallel replicas(network, communicator, config());
  });

  for (const auto& error : errors)
    EXPECT_THAT(message_of(error), AllOf(HasSubstr("'graph'"), HasSubstr("found a sparse one")));
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
