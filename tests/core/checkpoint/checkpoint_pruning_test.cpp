// Which checkpoints go once a newer one is there, and which stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/checkpoint/checkpoint_store.hpp"
#include "tests/core/checkpoint/as_anybody.hpp"
#include "tests/core/checkpoint/store_case.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using CheckpointPruningTest = StoreCase;

TEST_F(CheckpointPruningTest, prune_keeps_the_newest) {
  save_steps({1, 2, 3, 4});

  EXPECT_THAT(store_.prune(0, 4), IsEmpty());
  EXPECT_THAT(store_.prune(2, 4), ElementsAre(store_.final_folder(2), store_.final_folder(1)));
  EXPECT_THAT(store_.steps(), ElementsAre(3, 4));
}

TEST_F(CheckpointPruningTest, prune_removes_nothing_while_the_newest_does_not_verify) {
  save_steps({1, 2, 3});
  flip_bit(file(3, "model.safetensors"), 4000);

  EXPECT_THROW(store_.prune(1, 3), core::CheckpointError);
  EXPECT_THAT(store_.steps(), ElementsAre(1, 2, 3));
}

// A network file system that refuses for a moment: the save is there, and training goes on.
TEST_F(CheckpointPruningTest, prune_removes_nothing_while_the_newest_cannot_be_read) {
  save_steps({1, 2, 3});
  fs::permissions(folder_ / ".", fs::perms::all);
  fs::permissions(store_.folder(), fs::perms::all);
  for (const char* name : {"manifest.json", "model.safetensors"}) {
    fs::permissions(file(3, name), fs::perms::none);
    std::vector<std::string> told;
    {
      const AsAnybody user;
      const auto warn = [&](const std::string& problem) { told.push_back(problem); };
      EXPECT_THAT(store_.prune(1, 3, warn), IsEmpty());
    }
    EXPECT_THAT(told, ElementsAre(testing::AllOf(HasSubstr("no older one is removed"),
                                                 HasSubstr("Permission denied"))));
    fs::permissions(file(3, name), fs::perms(0644));
  }
  EXPECT_THAT(store_.steps(), ElementsAre(1, 2, 3));
}

// None of ours: by its step another folder would be looked at, or none.
TEST_F(CheckpointPruningTest, names_that_only_look_like_those_of_steps_are_left_alone) {
  save_steps({1, 100});
  for (const char* name : {"step_000000100", "step_-0000000", "step_+0000001", "step_0000001"})
    fs::copy(store_.final_folder(100), store_.folder() / name);

  EXPECT_THAT(store_.steps(), ElementsAre(1, 100));
  EXPECT_THAT(store_.prune(1, 100), ElementsAre(store_.final_folder(1)));
  EXPECT_THAT(store_.set_aside_after(0), testing::SizeIs(1));
  EXPECT_TRUE(fs::exists(store_.folder() / "step_000000100"));
}

TEST_F(CheckpointPruningTest, prune_does_not_count_a_damaged_one) {
  save_steps({1, 2, 3});
  fs::remove(file(2, "manifest.json"));

  EXPECT_THAT(store_.prune(2, 3), IsEmpty());
  EXPECT_THAT(store_.steps(), ElementsAre(1, 2, 3));
}

TEST_F(CheckpointPruningTest, prune_leaves_newer_ones_alone) {
  save_steps({1, 2, 3, 9});
  flip_bit(file(9, "model.safetensors"), 4000);

  EXPECT_THAT(store_.prune(1, 3), ElementsAre(store_.final_folder(2), store_.final_folder(1)));
  EXPECT_THAT(store_.steps(), ElementsAre(3, 9));
}

// Somebody protects an old checkpoint: saving and starting go on, and say so.
TEST_F(CheckpointPruningTest, what_cannot_be_removed_is_told_and_ends_nothing) {
  save_steps({1, 2, 3});
  fs::permissions(folder_ / ".", fs::perms::all);
  fs::permissions(store_.folder(), fs::perms::all);
  fs::permissions(store_.final_folder(1), fs::perms(0555));
  std::vector<std::string> told;
  const auto warn = [&](const std::string& problem) { told.push_back(problem); };
  {
    const AsAnybody user;
    EXPECT_THAT(store_.prune(2, 3, warn), IsEmpty());
    EXPECT_EQ(store_.remove_leftovers(warn), 0u);
  }
  EXPECT_GE(told.size(), 1u);
  for (const std::string& problem : told)
    EXPECT_THAT(problem, testing::AllOf(HasSubstr("step_00000001"), HasSubstr("takes up room")));
  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.step, 3);
}

}  // namespace
}  // namespace sidestream::checkpoint
