#include "core/data/staged_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <vector>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Makes the folder often, and writes into it.
bool writes_each_time(const fs::path& target) {
  constexpr int kTimes = 500;
  for (int i = 0; i < kTimes; ++i) {
    const StagedFolder folder(target);
    std::ofstream file(folder.path() / "shard");
    file << "tokens" << std::flush;
    if (!file.good() || !fs::exists(folder.path() / "shard")) return false;
  }
  return true;
}

TEST(StagedFolderTest, is_the_target_when_it_is_put_in_place) {
  const core::ScratchFolder scratch;
  {
    StagedFolder folder(scratch / "out");
    std::ofstream(folder.path() / "shard") << "tokens";
    folder.put_in_place();
    StagedFolder dropped(scratch / "other");
  }

  EXPECT_THAT(scratch.names(), ElementsAre("out"));
  EXPECT_TRUE(fs::exists(scratch / "out/shard"));
}

TEST(StagedFolderTest, what_a_process_that_was_killed_has_left_goes) {
  const core::ScratchFolder scratch;
  fs::create_directories(scratch / "out.tmp.host.17/inside");

  const StagedFolder folder(scratch / "out");

  EXPECT_THAT(scratch.names(), ElementsAre(folder.path().filename().string()));
}

// Each removes what it takes for left over, and must never take what another one has just made.
TEST(StagedFolderTest, processes_with_the_same_target_leave_each_other_their_folders) {
  constexpr int kProcesses = 4;
  const core::ScratchFolder scratch;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    bool is_good = false;
    try {
      is_good = writes_each_time(scratch / "out");
    } catch (const std::exception&) {
    }
    ::_exit(is_good ? 0 : 1);
  }

  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_THAT(scratch.names(), IsEmpty());
}

}  // namespace
}  // namespace sidestream::data
