#include "core/checkpoint/run_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "core/base/error.hpp"
#include "core/checkpoint/run_leftovers.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunDirectoryTest : public testing::Test {
 protected:
  std::string error_of(const fs::path& root, UsedRun used = UsedRun::kRefuse) const {
    try {
      RunDirectory run(root, used);
    } catch (const core::ConfigError& error) {
      return error.what();
    }
    return {};
  }

  core::ScratchFolder folder_;
  fs::path root_ = folder_ / "runs" / "a";
};

TEST_F(RunDirectoryTest, new_folder_is_created_with_its_parents) {
  const RunDirectory run(root_, UsedRun::kRefuse);

  EXPECT_TRUE(fs::is_directory(root_ / "checkpoints"));
  EXPECT_FALSE(RunDirectory::is_used(run.paths()));
  EXPECT_EQ(run.paths().metrics(), root_ / "metrics.jsonl");
  EXPECT_EQ(run.paths().traces(), root_ / "trace");
}

TEST_F(RunDirectoryTest, folder_without_a_run_may_be_taken_again) {
  { const RunDirectory run(root_, UsedRun::kRefuse); }

  EXPECT_EQ(error_of(root_), "");
}

TEST_F(RunDirectoryTest, used_folder_is_refused_and_the_flag_named) {
  { const RunDirectory run(root_, UsedRun::kRefuse); }
  core::write_file_atomically(root_ / "metrics.jsonl", "{}\n");

  EXPECT_THAT(error_of(root_), HasSubstr("holds an earlier run. Continue it with --resume auto"));
  EXPECT_EQ(error_of(root_, UsedRun::kContinue), "");
}

TEST_F(RunDirectoryTest, folder_with_a_checkpoint_is_used) {
  fs::create_directories(root_ / "checkpoints" / "step_00000001");

  EXPECT_THAT(error_of(root_), HasSubstr("--resume auto"));
}

TEST_F(RunDirectoryTest, second_owner_is_refused_and_the_first_named) {
  const RunDirectory run(root_, UsedRun::kRefuse);

  EXPECT_THAT(error_of(root_, UsedRun::kContinue),
              HasSubstr("is in use by process " + std::to_string(::getpid())));
}

TEST_F(RunDirectoryTest, lock_of_a_killed_process_is_free) {
  const pid_t child = ::fork();
  if (child == 0) {
    const RunDirectory run(root_, UsedRun::kRefuse);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  EXPECT_EQ(error_of(root_), "");
}

TEST_F(RunDirectoryTest, link_out_of_the_folder_is_refused_and_nothing_written_through_it) {
  for (const char* name : {"config.cfg", "run.json", "lock", "metrics.jsonl", "ettr.jsonl",
                           "incidents.jsonl", "checkpoints", "flight", "trace", "report",
                           "trace/step_00000004", "trace/step_00000004/clock.json",
                           "flight/from_step_00000000", "flight/set_up/rank_00000.json"}) {
    SCOPED_TRACE(name);
    fs::create_directories((root_ / name).parent_path());
    core::write_file_atomically(folder_ / "victim", "mine");
    fs::create_symlink(folder_ / "victim", root_ / name);

    EXPECT_THAT(error_of(root_, UsedRun::kContinue), HasSubstr(std::string(name) + " is a link"));
    EXPECT_EQ(core::read_file(folder_ / "victim"), "mine");
    fs::remove_all(root_);
  }
}

TEST_F(RunDirectoryTest, folder_that_is_a_link_itself_is_taken) {
  fs::create_directories(folder_ / "large_disk");
  fs::create_directories(root_.parent_path());
  fs::create_symlink(folder_ / "large_disk", root_);

  EXPECT_EQ(error_of(root_), "");
}

TEST_F(RunDirectoryTest, folder_that_cannot_be_made_or_written_is_named) {
  core::write_file_atomically(folder_ / "file", "not a folder");

  EXPECT_THAT(error_of(folder_ / "file" / "run"), HasSubstr("cannot create"));
  // Writing is refused here for root as well.
  EXPECT_THAT(error_of("/proc/self/task"), HasSubstr("--run-dir: /proc/self/task is not writable"));
}

TEST_F(RunDirectoryTest, file_in_the_place_of_a_folder_is_to_be_moved_away) {
  core::write_file_atomically(folder_ / "file", "not a folder");
  EXPECT_THAT(error_of(folder_ / "file"), HasSubstr("file is not a folder: move it away"));

  fs::create_directories(root_);
  core::write_file_atomically(root_ / "checkpoints", "not a folder");
  EXPECT_THAT(error_of(root_), HasSubstr("checkpoints is not a folder: move it away"));
}

TEST_F(RunDirectoryTest, what_is_no_file_is_refused) {
  fs::create_directories(root_ / "metrics.jsonl");
  EXPECT_THAT(error_of(root_, UsedRun::kContinue), HasSubstr("metrics.jsonl: expected a file"));
  fs::remove(root_ / "metrics.jsonl");
  ASSERT_EQ(::mkfifo((root_ / "run.json").c_str(), 0600), 0);
  EXPECT_THAT(error_of(root_, UsedRun::kContinue), HasSubstr("run.json: expected a file"));
}

TEST_F(RunDirectoryTest, folder_that_stays_is_held_without_a_word) {
  RunDirectory run(root_, UsedRun::kRefuse);
  core::write_file_atomically(root_ / "metrics.jsonl", "{}\n");

  EXPECT_EQ(run.hold(), std::nullopt);
}

TEST_F(RunDirectoryTest, folder_that_was_removed_is_made_and_locked_again) {
  RunDirectory run(root_, UsedRun::kRefuse);
  for (const fs::path& gone : {root_, root_ / "checkpoints"}) {
    fs::remove_all(gone);

    EXPECT_THAT(run.hold().value_or(""), HasSubstr(gone.string() + " has gone"));
    EXPECT_TRUE(fs::is_directory(root_ / "checkpoints"));
    EXPECT_THAT(error_of(root_, UsedRun::kContinue), HasSubstr("is in use by"));
    EXPECT_EQ(run.hold(), std::nullopt);
  }
}

TEST_F(RunDirectoryTest, lock_that_was_removed_is_taken_again_unless_another_run_has_it) {
  RunDirectory run(root_, UsedRun::kRefuse);
  fs::remove(root_ / "lock");
  EXPECT_EQ(run.hold(), std::nullopt);
  EXPECT_THAT(error_of(root_, UsedRun::kContinue), HasSubstr("is in use by"));

  fs::remove(root_ / "lock");
  const RunDirectory other(root_, UsedRun::kContinue);
  EXPECT_THROW(run.hold(), core::CheckpointError);
}

TEST_F(RunDirectoryTest, folder_of_another_run_in_its_place_is_left_alone) {
  RunDirectory run(root_, UsedRun::kRefuse);
  fs::rename(root_, folder_ / "moved");
  fs::create_directories(root_);
  core::write_file_atomically(root_ / "config.cfg", "");

  EXPECT_THROW(run.hold(), core::CheckpointError);
  EXPECT_FALSE(fs::exists(root_ / "checkpoints"));
  EXPECT_FALSE(fs::exists(root_ / "lock"));
}

// As a network file system does that was mounted anew.
TEST_F(RunDirectoryTest, folder_of_its_own_under_other_numbers_is_taken_back_without_a_word) {
  RunDirectory run(root_, UsedRun::kRefuse);
  core::write_file_atomically(root_ / "config.cfg", "");
  fs::copy(root_, folder_ / "copy", fs::copy_options::recursive);
  fs::rename(root_, folder_ / "moved");
  fs::rename(folder_ / "copy", root_);

  EXPECT_EQ(run.hold(), std::nullopt);
  EXPECT_THAT(error_of(root_, UsedRun::kContinue), HasSubstr("is in use by"));
}

TEST_F(RunDirectoryTest, unfinished_files_of_a_killed_run_go_and_nothing_else) {
  const RunDirectory run(root_, UsedRun::kRefuse);
  fs::create_directories(root_ / "flight" / "from_step_00000000");
  fs::create_directories(root_ / "trace" / "steps");
  const std::vector<fs::path> unfinished = {
      root_ / "run.json.tmp.17",
      root_ / "run.json.tmp.node-1.example.0123456789abcdef",
      root_ / "metrics.jsonl.damaged.tmp.host.0123456789abcdef",
      root_ / ".probe.host.17",
      root_ / "checkpoints" / ".probe.host.18.tmp.18",
      root_ / "flight" / "from_step_00000000" / "rank_00001.json.tmp.18",
      root_ / "flight" / "from_step_00000000" / "rank_00001.json.tmp.host.fedcba9876543210",
      root_ / "trace" / "steps" / "rank_00000.json.gz.partial",
      root_ / "trace" / "steps" / "rank_00000.json.gz.tmp.host.0123456789abcdef.partial",
      root_ / "trace" / "steps" / ".raw_00003.json",
      root_ / "trace" / "steps" / ".raw_00003.json.tmp"};
  const std::vector<fs::path> others = {root_ / "run.json",
                                        root_ / "notes.tmp.1",
                                        root_ / "notes.tmp.host.0123456789abcdef",
                                        root_ / "run.json.tmp.host.mine",
                                        root_ / "report.html.partial",
                                        root_ / "trace" / "steps" / "rank_00000.json.gz"};
  for (const auto& files : {unfinished, others}) {
    for (const fs::path& file : files) core::write_file_atomically(file, "x");
  }
  fs::create_symlink(root_ / "run.json", root_ / "trace" / "link.partial");

  fs::remove(root_ / "run.json");
  EXPECT_FALSE(RunDirectory::is_used(run.paths())) << "a probe is no checkpoint";
  core::write_file_atomically(root_ / "run.json", "x");
  EXPECT_EQ(remove_run_leftovers(run.paths()), unfinished.size());

  for (const fs::path& file : unfinished) EXPECT_FALSE(fs::exists(file)) << file;
  for (const fs::path& file : others) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_TRUE(fs::exists(root_ / "trace" / "link.partial"));
  EXPECT_EQ(remove_run_leftovers(RunPaths(root_ / "absent")), 0U);
}

TEST_F(RunDirectoryTest, halves_of_saves_go_and_checkpoints_keep_their_names) {
  const RunDirectory run(root_, UsedRun::kRefuse);
  for (const char* name : {"step_00000009.pending", "step_00000006.trash"})
    fs::create_directories(root_ / "checkpoints" / name / "inside");
  const std::vector<fs::path> others = {root_ / "checkpoints" / "step_00000003.replaced",
                                        root_ / "checkpoints" / "step_00000001",
                                        root_ / "checkpoints" / "mine.pending"};
  for (const fs::path& folder : others) fs::create_directories(folder);

  EXPECT_EQ(remove_run_leftovers(run.paths()), 2U);

  for (const fs::path& folder : others) EXPECT_TRUE(fs::exists(folder)) << folder;
}

TEST_F(RunDirectoryTest, room_is_made_with_the_lock_and_before_anything_is_written) {
  { const RunDirectory before(root_, UsedRun::kRefuse); }
  fs::remove(root_ / "checkpoints");
  std::string refusal;
  bool is_first = false;

  const RunDirectory run(root_, UsedRun::kContinue, "--run-dir", [&](const RunPaths& paths) {
    refusal = error_of(paths.root(), UsedRun::kContinue);
    is_first = !fs::exists(paths.checkpoints());
  });

  EXPECT_THAT(refusal, HasSubstr("is in use by"));
  EXPECT_TRUE(is_first);
}

// Nobody but who has the lock may take them for its own.
TEST_F(RunDirectoryTest, no_room_is_made_in_a_folder_that_is_refused) {
  { const RunDirectory before(root_, UsedRun::kRefuse); }
  core::write_file_atomically(root_ / "metrics.jsonl", "{}\n");
  bool is_asked = false;
  const auto ask = [&](const RunPaths&) { is_asked = true; };

  EXPECT_THROW(RunDirectory(root_, UsedRun::kRefuse, "--run-dir", ask), core::ConfigError);
  const RunDirectory owner(root_, UsedRun::kContinue);
  EXPECT_THROW(RunDirectory(root_, UsedRun::kContinue, "--run-dir", ask), core::ConfigError);

  EXPECT_FALSE(is_asked);
}

}  // namespace
}  // namespace sidestream::checkpoint
