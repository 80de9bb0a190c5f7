#include "launch/trainer/lock_wait.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstdlib>
#include <vector>

#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LockWaitTest : public testing::Test {
 protected:
  // As the start before would hold it; two descriptors exclude each other within a process too.
  core::UniqueFd hold() const {
    core::write_file_atomically(paths_.lock(), "process 77 on node1");
    core::UniqueFd held(::open(paths_.lock().c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
    return held;
  }

  core::ScratchFolder folder_;
  checkpoint::RunPaths paths_{folder_.path()};
  std::vector<std::string> told_;
};

TEST_F(LockWaitTest, nobody_holds_it) {
  const auto tell = [&](const std::string& line) { told_.push_back(line); };

  wait_for_lock(paths_, 1h, tell);
  core::write_file_atomically(paths_.lock(), "process 77 on node1");
  wait_for_lock(paths_, 1h, tell);

  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(LockWaitTest, the_owner_lets_go) {
  core::UniqueFd held = hold();

  wait_for_lock(paths_, 1h, [&](const std::string& line) {
    told_.push_back(line);
    held.reset();
  });

  EXPECT_THAT(told_, ElementsAre(HasSubstr("still in use by process 77 on node1;")));
  const checkpoint::RunDirectory taken(folder_.path(), checkpoint::UsedRun::kContinue);
}

TEST_F(LockWaitTest, the_owner_stays) {
  const core::UniqueFd held = hold();

  wait_for_lock(paths_, 30ms, [&](const std::string& line) { told_.push_back(line); });

  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(LockWaitTest, restarts) {
  EXPECT_FALSE(is_restart());
  ::setenv("SIDESTREAM_ATTEMPT", "2", 1);
  EXPECT_TRUE(is_restart());
  ::setenv("SIDESTREAM_ATTEMPT", "1", 1);
  EXPECT_FALSE(is_restart());
  ::setenv("SLURM_RESTART_COUNT", "0", 1);
  EXPECT_FALSE(is_restart());
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  EXPECT_TRUE(is_restart());
  ::unsetenv("SLURM_RESTART_COUNT");
  ::unsetenv("SIDESTREAM_ATTEMPT");
}

}  // namespace
}  // namespace sidestream::launch
