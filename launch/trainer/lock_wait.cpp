#include "launch/trainer/lock_wait.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/base/file.hpp"
#include "core/faults/fault_injector.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{100};

// Another process has it; anything else that can be wrong is told by who takes it.
bool is_held(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

std::string owner_of(int fd) {
  std::array<char, 256> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length))
                    : "an unknown process";
}

}  // namespace

bool is_restart() {
  const char* const requeued = std::getenv("SLURM_RESTART_COUNT");
  return faults::Victim::attempt_of_this_process() > 1 ||
         (requeued != nullptr && std::string_view(requeued) != "0");
}

void wait_for_lock(const checkpoint::RunPaths& paths, std::chrono::milliseconds limit,
                   const std::function<void(const std::string&)>& tell) {
  const core::UniqueFd lock(::open(paths.lock().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock || !is_held(lock.get())) return;
  tell(fmt::format(
      "{} is still in use by {}; this is a restart, which waits for it for {:.0f} s "
      "(a network file system keeps the lock of a host that died for a minute or two)",
      paths.root().string(), owner_of(lock.get()), std::chrono::duration<double>(limit).count()));
  const auto end = Clock::now() + limit;
  while (is_held(lock.get()) && Clock::now() < end) std::this_thread::sleep_for(kBetweenLooks);
}

}  // namespace sidestream::launch
