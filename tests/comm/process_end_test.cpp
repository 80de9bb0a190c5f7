// What the system says of a process that has ended; an old kernel says nothing.
#include "comm/process_end.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/base/file.hpp"

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
  EXPECT_EQ(text_of({.how = How::kExited, .number = 17}), "it exited by itself with code 17");
  EXPECT_EQ(text_of({.how = How::kKilled, .number = SIGSEGV}), "killed by SIGSEGV");
  EXPECT_THAT(text_of({.how = How::kKilled, .number = SIGKILL}),
              HasSubstr("killed by SIGKILL: by somebody, or by the kernel for want of memory"));
  EXPECT_THAT(text_of({}), HasSubstr("killed, or it exited by itself"));
}

}  // namespace
}  // namespace sidestream::comm
