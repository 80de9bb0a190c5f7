// What the system says of a process that has ended; an old kernel says nothing.
#include "comm/process_end.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "comm/memory_kills.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::comm {
namespace {

using How = ProcessEnd::How;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Of a child that does this, once its end has been taken.
ProcessEnd end_of_child(const std::function<void()>& then) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::usleep(20'000);
    then();
    ::_exit(0);
  }
  const core::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  EXPECT_EQ(end_of_process(handle.get()).how, How::kUnknown) << "it runs";
  ::waitpid(child, nullptr, 0);
  return end_of_process(handle.get());
}

TEST(ProcessEndTest, end_ofAnExit) {
  const ProcessEnd end = end_of_child([] { ::_exit(17); });

  EXPECT_THAT(end.how, AnyOf(How::kExited, How::kUnknown));
  if (end.how == How::kExited) {
    EXPECT_EQ(end.number, 17);
  }
}

TEST(ProcessEndTest, end_ofASignal) {
  const ProcessEnd end = end_of_child([] { ::raise(SIGKILL); });

  EXPECT_THAT(end.how, AnyOf(How::kKilled, How::kUnknown));
  if (end.how == How::kKilled) {
    EXPECT_EQ(end.number, SIGKILL);
  }
}

TEST(ProcessEndTest, text_saysNoMoreThanIsKnown) {
  const ProcessEnd killed{.how = How::kKilled, .number = SIGKILL};
  EXPECT_EQ(text_of({.how = How::kExited, .number = 17}, 1), "it exited by itself with code 17");
  EXPECT_EQ(text_of({.how = How::kKilled, .number = SIGSEGV}, 1), "killed by SIGSEGV");
  EXPECT_THAT(text_of(killed, std::nullopt),
              HasSubstr("killed by SIGKILL: by somebody, or by the kernel for want of memory"));
  EXPECT_THAT(text_of(killed, 0), HasSubstr("the kernel has killed nobody for want of memory"));
  EXPECT_THAT(text_of(killed, 2), HasSubstr("has killed 2 process(es) of this host for want of"));
  EXPECT_THAT(text_of({}, 2), HasSubstr("killed, or it exited by itself: the kernel has killed 2"));
}

class MemoryKillsTest : public ::testing::Test {
 protected:
  std::optional<std::int64_t> kills_in(const std::string& text) {
    std::ofstream(scratch_.path() / "vmstat") << text;
    return memory_kills_of_host(scratch_.path() / "vmstat");
  }

 private:
  core::ScratchFolder scratch_;
};

TEST_F(MemoryKillsTest, areCountedByTheKernel) {
  EXPECT_EQ(kills_in("nr_free_pages 5\noom_kill 3\nswap_ra 0\n"), 3);
}

TEST_F(MemoryKillsTest, ofAnOldKernel_areNotKnown) {
  EXPECT_EQ(kills_in("nr_free_pages 5\n"), std::nullopt);
  EXPECT_EQ(memory_kills_of_host("/proc/nowhere"), std::nullopt);
}

}  // namespace
}  // namespace sidestream::comm
