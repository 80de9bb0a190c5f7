// What there is of this host's memory, as the kernel tells this process: for checks, and for
// messages that say what was there when something could not be had.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/cgroup_limits.hpp"

namespace sidestream::core {

struct HostMemory {
  std::int64_t total_bytes = 0;            // 0: the kernel does not say
  std::int64_t available_bytes = 0;        // without what would have to be swapped out
  std::int64_t swap_bytes = 0;             // in all
  std::int64_t limit_bytes = kUnlimited;   // of the control group
  std::int64_t limit_used_bytes = 0;       // of that limit
  std::int64_t locked_bytes = kUnlimited;  // that one process may lock (ulimit -l)

  bool is_known() const noexcept { return total_bytes > 0; }
  // Free now: what the control group leaves counts as well as what the machine has.
  std::int64_t usable_bytes() const noexcept;
  // There can never be more, whoever ends and whatever is swapped out.
  std::int64_t most_bytes() const noexcept;
  // "1200 MiB of host memory are free, and 64 MiB may be locked (ulimit -l)"
  std::string text() const;
};

// proc and sys: for tests. The limit of locked memory is that of this process.
HostMemory read_host_memory(const std::filesystem::path& proc = "/proc",
                            const std::filesystem::path& sys = "/sys");

}  // namespace sidestream::core
