// What the control groups of this process allow: the limits of a container or of a batch system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace sidestream::core {

// Of limits.
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct CgroupLimits {
  std::int64_t memory_bytes = kUnlimited;
  std::int64_t memory_used_bytes = 0;  // of the group with that limit; file caches do not count
  std::int64_t tasks_left = kUnlimited;
  double processors = 0;  // worth of time; 0: no quota
};

// The tightest of the process's group and those above it, in version 1 or 2 of the kernel's
// interface. proc and sys: for tests.
CgroupLimits read_cgroup_limits(const std::filesystem::path& proc = "/proc",
                                const std::filesystem::path& sys = "/sys");

}  // namespace sidestream::core
