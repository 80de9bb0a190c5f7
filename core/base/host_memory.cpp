#include "core/base/host_memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <sstream>

#include "core/base/small_file.hpp"

namespace sidestream::core {
namespace {

std::string mib(std::int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Lines of meminfo: "MemAvailable:   21345000 kB".
void take_meminfo(const std::string& text, HostMemory& memory) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t kilobytes = 0;
    if (!(words >> name >> kilobytes)) continue;
    const std::int64_t bytes = kilobytes * 1024;
    if (name == "MemTotal:") memory.total_bytes = bytes;
    if (name == "MemAvailable:") memory.available_bytes = bytes;
    if (name == "SwapTotal:") memory.swap_bytes = bytes;
  }
}

std::int64_t locked_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, static_cast<rlim_t>(kUnlimited)));
}

}  // namespace

std::int64_t HostMemory::usable_bytes() const noexcept {
  if (limit_bytes == kUnlimited) return available_bytes;
  return std::min(available_bytes, std::max<std::int64_t>(0, limit_bytes - limit_used_bytes));
}

std::int64_t HostMemory::most_bytes() const noexcept {
  return std::min(total_bytes, limit_bytes) + swap_bytes;
}

std::string HostMemory::text() const {
  const std::string free =
      is_known() ? mib(usable_bytes()) + " of host memory are free" : "free memory is not known";
  return free + (locked_bytes == kUnlimited
                     ? ", and any of it may be locked (ulimit -l)"
                     : ", and " + mib(locked_bytes) + " may be locked (ulimit -l)");
}

HostMemory read_host_memory(const std::filesystem::path& proc, const std::filesystem::path& sys) {
  const CgroupLimits limits = read_cgroup_limits(proc, sys);
  HostMemory memory{.limit_bytes = limits.memory_bytes,
                    .limit_used_bytes = limits.memory_used_bytes,
                    .locked_bytes = locked_limit()};
  take_meminfo(text_of(proc / "meminfo"), memory);
  return memory;
}

}  // namespace sidestream::core
