#include "comm/process_end.hpp"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cstdint>

namespace sidestream::comm {
namespace {

// linux/pidfd.h of 6.15, which is newer than the headers of the systems that this is built on.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup_id = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kExitIsKnown = 1U << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : "SIG" + std::string(name);
}

std::string killer_text(std::optional<std::int64_t> memory_kills) {
  if (!memory_kills)
    return "by somebody, or by the kernel for want of memory, which the system's log would tell";
  if (*memory_kills == 0)
    return "by somebody or by the batch system; the kernel has killed nobody for want of memory";
  return "the kernel has killed " + std::to_string(*memory_kills) +
         " process(es) of this host for want of memory since the start, and the system's log says "
         "which; a smaller --batch-size-per-rank or --prefetch needs less";
}

}  // namespace

ProcessEnd end_of_process(int pidfd) noexcept {
  PidfdInfo info{.mask = kExitIsKnown};
  const bool known = ::ioctl(pidfd, kGetInfo, &info) == 0 && (info.mask & kExitIsKnown) != 0;
  if (!known) return {};
  if (WIFEXITED(info.exit_code))
    return {.how = ProcessEnd::How::kExited, .number = WEXITSTATUS(info.exit_code)};
  return {.how = ProcessEnd::How::kKilled, .number = WTERMSIG(info.exit_code)};
}

std::string text_of(const ProcessEnd& end, std::optional<std::int64_t> memory_kills) {
  switch (end.how) {
    case ProcessEnd::How::kExited:
      return "it exited by itself with code " + std::to_string(end.number);
    case ProcessEnd::How::kKilled:
      if (end.number == SIGKILL) return "killed by SIGKILL: " + killer_text(memory_kills);
      return "killed by " + signal_name(end.number);
    case ProcessEnd::How::kUnknown:
      break;
  }
  return "killed, or it exited by itself: " + killer_text(memory_kills);
}

}  // namespace sidestream::comm
