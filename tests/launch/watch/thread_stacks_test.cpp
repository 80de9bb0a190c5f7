#include "launch/watch/thread_stacks.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/file.hpp"
#include "core/base/worker_thread.hpp"

namespace sidestream::launch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

[[gnu::noinline]] void wait_here(std::atomic<bool>& stop) {
  while (!stop) std::this_thread::sleep_for(milliseconds(10));
}

// Of the thread with this name, once `is_it` likes it.
template <typename Predicate>
ThreadStack stack_of(const std::string& name, const ThreadStacks& stacks, Predicate is_it) {
  ThreadStack found;
  for (int attempt = 0; attempt < 500 && !is_it(found); ++attempt) {
    std::this_thread::sleep_for(milliseconds(10));  // until it has its name
    for (ThreadStack& stack : stacks.take()) {
      for (const std::string& call : stack.calls)
        EXPECT_FALSE(call.starts_with("/")) << call << ": a folder of this machine";
      if (stack.name == name) found = std::move(stack);
    }
  }
  return found;
}

bool has_calls(const ThreadStack& stack) { return stack.calls.size() > 2; }

TEST(ThreadStacksTest, take_everyThreadByName) {
  const ThreadStacks stacks;
  std::atomic<bool> stop{false};
  std::thread plain([&] {
    core::name_this_thread("waits-here");
    wait_here(stop);
  });
  std::thread worker([&] {
    core::become_worker_thread("ss-waits");
    wait_here(stop);
  });
  const ThreadStack of_plain = stack_of("waits-here", stacks, has_calls);
  const ThreadStack of_worker = stack_of("ss-waits", stacks, has_calls);
  stop = true;
  plain.join();
  worker.join();

  EXPECT_GT(of_plain.calls.size(), 2U);
  EXPECT_GT(of_worker.calls.size(), 2U) << "takes no signal: " << of_worker.state;
  EXPECT_EQ(of_worker.state, "");
}

// The kernel keeps a thread from its signals until its child ends or executes a program, as it does
// while a file system does not answer.
void wait_for_a_child(int read_end) {
  const long child =
      ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    char byte = 0;
    ::syscall(SYS_read, read_end, &byte, 1);
    ::syscall(SYS_exit_group, 0);
  }
  ::waitpid(static_cast<pid_t>(child), nullptr, 0);
}

TEST(ThreadStacksTest, take_stateOfAThreadThatTheKernelHolds) {
  const ThreadStacks stacks;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const core::UniqueFd read_end(ends[0]), write_end(ends[1]);
  std::thread held([&] {
    core::name_this_thread("in-the-kernel");
    wait_for_a_child(read_end.get());
  });

  const ThreadStack stack = stack_of(
      "in-the-kernel", stacks, [](const ThreadStack& seen) { return seen.state.starts_with("D"); });
  core::write_all(write_end.get(), "x", "pipe");
  held.join();

  EXPECT_THAT(stack.state, HasSubstr("D (disk sleep)"));
  EXPECT_TRUE(stack.calls.empty());
}
}  // namespace
}  // namespace sidestream::launch
