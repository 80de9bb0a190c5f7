#include "launch/watch/thread_stacks.hpp"

#include <cxxabi.h>
#include <dirent.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/worker_thread.hpp"

namespace sidestream::launch {
namespace {

constexpr int kMostCalls = 64;
constexpr long kPatienceNs = 100'000'000;
constexpr long kPatienceWhileAnsweringNs = 2'000'000'000;

// Signal handlers have no argument for a context: this is the one place with static state.
std::array<void*, kMostCalls> frames;
std::atomic<int> frame_count{0};
std::atomic<int> asked_thread{0};  // kAnswering: its handler is at work
constexpr int kAnswering = -1;
sem_t answered;
struct sigaction previous_action;

int this_thread_id() { return static_cast<int>(::syscall(SYS_gettid)); }

// A late answer to an earlier question is none to this one.
void answer(int) {
  const int saved_error = errno;
  int asked = this_thread_id();
  if (asked_thread.compare_exchange_strong(asked, kAnswering)) {
    frame_count.store(::backtrace(frames.data(), kMostCalls));
    asked_thread.store(0);
    sem_post(&answered);
  }
  errno = saved_error;
}

std::vector<int> threads_of_this_process() {
  std::vector<int> ids;
  DIR* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return ids;
  while (const dirent* const entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') ids.push_back(std::atoi(entry->d_name));
  }
  ::closedir(folder);
  return ids;
}

std::ifstream file_of_thread(int id, const std::string& name) {
  return std::ifstream("/proc/self/task/" + std::to_string(id) + "/" + name);
}

std::string name_of_thread(int id) {
  std::string name;
  std::ifstream file = file_of_thread(id, "comm");
  std::getline(file, name);
  return name;
}

// "D (disk sleep)" of the line "State:\tD (disk sleep)"; empty: the thread has ended.
std::string status_of_thread(int id, std::string_view key) {
  std::ifstream file = file_of_thread(id, "status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto value = line.find_first_not_of(" \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

// Such a thread would never answer. "SigBlk: 0000000000004a02", a bit a signal from 1 on.
bool takes_no_signals(int id) {
  const std::string blocked = status_of_thread(id, "SigBlk:");
  if (blocked.empty()) return true;
  return (std::strtoull(blocked.c_str(), nullptr, 16) >> (core::stack_signal() - 1) & 1) != 0;
}

// As far as the kernel tells: of a thread that waits for a dead file system no more can be had.
std::string state_of_thread(int id) {
  std::string state = status_of_thread(id, "State:");
  std::string call, place;
  file_of_thread(id, "syscall") >> call;  // its number, or "running"
  file_of_thread(id, "wchan") >> place;   // a function of the kernel, or "0"
  if (!call.empty() && call != "running" && call != "-1") state += ", system call " + call;
  if (!place.empty() && place != "0") state += ", in " + place;
  return state;
}

// "/where/program(_Zmangled+0x1f) [0x55..]" without the folder, which is nobody's business.
std::string without_folder(const std::string& symbol) {
  const auto end = std::min(symbol.find('('), symbol.find(" ["));
  const auto slash = symbol.substr(0, end).rfind('/');
  return slash == std::string::npos ? symbol : symbol.substr(slash + 1);
}

// "program(_Zmangled+0x1f) [0x55..]" with the name as a person reads it.
std::string readable(const std::string& symbol) {
  const auto open = symbol.find('(');
  const auto plus = symbol.find('+', open);
  if (open == std::string::npos || plus == std::string::npos || plus == open + 1) return symbol;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.substr(open + 1, plus - open - 1).c_str(), nullptr, nullptr,
                          &status),
      &std::free);
  return status == 0 ? name.get() + symbol.substr(plus) : symbol;
}

std::vector<std::string> names_of(void* const* calls, int count) {
  std::vector<std::string> names;
  const std::unique_ptr<char*, decltype(&std::free)> symbols(::backtrace_symbols(calls, count),
                                                             &std::free);
  for (int i = 0; symbols && i < count; ++i)
    names.push_back(readable(without_folder(symbols.get()[i])));
  return names;
}

bool comes_within(long patience_ns) {
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += patience_ns;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  while (sem_timedwait(&answered, &until) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// A thread that has begun to answer has the frames until it is done; most often it waits for a
// processor meanwhile.
bool has_answered(int id) {
  if (comes_within(kPatienceNs)) return true;
  if (int asked = id; asked_thread.compare_exchange_strong(asked, 0)) return false;
  return comes_within(kPatienceWhileAnsweringNs);
}

std::vector<std::string> calls_of_thread(int id) {
  if (takes_no_signals(id)) return {};
  while (sem_trywait(&answered) == 0) {
  }
  // One that never came to the end of its answer still has the frames.
  if (int none = 0; !asked_thread.compare_exchange_strong(none, id)) return {};
  if (::syscall(SYS_tgkill, ::getpid(), id, core::stack_signal()) != 0) {  // it has ended
    asked_thread.store(0);
    return {};
  }
  if (!has_answered(id)) return {};
  return names_of(frames.data(), frame_count.load());
}

}  // namespace

ThreadStacks::ThreadStacks() {
  std::array<void*, 1> first;
  ::backtrace(first.data(), 1);  // loads what it needs now, and not in a handler
  sem_init(&answered, 0, 0);
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(core::stack_signal(), &action, &previous_action);
}

// A thread that comes back late may still have the question before it: that must not end the
// process, as the signal does by default.
ThreadStacks::~ThreadStacks() {
  if (previous_action.sa_handler == SIG_DFL) previous_action.sa_handler = SIG_IGN;
  sigaction(core::stack_signal(), &previous_action, nullptr);
}

std::vector<ThreadStack> ThreadStacks::take() const {
  std::vector<ThreadStack> stacks;
  std::array<void*, kMostCalls> own;
  const int self = this_thread_id();
  stacks.push_back({.id = self,
                    .name = name_of_thread(self),
                    .calls = names_of(own.data(), ::backtrace(own.data(), kMostCalls))});
  for (const int id : threads_of_this_process()) {
    if (id == self) continue;
    ThreadStack stack{.id = id, .name = name_of_thread(id), .calls = calls_of_thread(id)};
    if (stack.calls.empty()) stack.state = state_of_thread(id);
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

}  // namespace sidestream::launch
