// What the system says of a process that has ended; an old kernel says nothing.
#include "comm/process_end.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "comm/memory_kills.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::comm {
namespace {

using How = ProcessEnd::How;
using ::testing::HasSubstr;

// PIDFD_GET_INFO tells how a process ended since Linux 6.15.
bool kernel_tells_ends() {
  utsname system{};
  int major = 0, minor = 0;
  if (::uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2)
    return false;
  return major > 6 || (major == 6 && minor >= 15);
}

// Of a child that does this, once its end has been taken.
ProcessEnd end_of_child(const std::function<void()>& then) {
  int looked[2];
  EXPECT_EQ(::pipe(looked), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(looked[1]);
    char nothing = 0;
    if (::read(looked[0], &nothing, 1) == 0) then();
    ::_exit(0);
  }
  ::close(looked[0]);
  const core::UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  EXPECT_EQ(end_of_process(handle.get()).how, How::kUnknown) << "it runs";
  ::close(looked[1]);
  ::waitpid(child, nullptr, 0);
  return end_of_process(handle.get());
}

void expect_end(const ProcessEnd& end, How how, int number) {
  if (kernel_tells_ends()) {
    EXPECT_EQ(end.how, how);
    EXPECT_EQ(end.number, number);
  } else {
    EXPECT_EQ(end.how, How::kUnknown);
  }
}

TEST(ProcessEndTest, end_ofAnExit) {
  expect_end(end_of_child([] { ::_exit(17); }), How::kExited, 17);
}

TEST(ProcessEndTest, end_ofASignal) {
  expect_end(end_of_child([] { ::raise(SIGKILL); }), How::kKilled, SIGKILL);
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
