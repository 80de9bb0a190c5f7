#include "core/base/cgroup_limits.hpp"

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/small_file.hpp"

namespace sidestream::core {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAsGoodAsUnlimited = std::int64_t{1} << 60;  // what version 1 writes

// The folder of a group and those above it; a container may see only the last of them.
std::vector<fs::path> folders(const fs::path& root, const std::string& group) {
  std::vector<fs::path> all;
  for (fs::path part = fs::path(group).relative_path();; part = part.parent_path()) {
    all.push_back(part.empty() ? root : root / part);
    if (part.empty()) return all;
  }
}

// The value of "name value" on a line of its own; 0 where there is none.
std::int64_t value_named(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return number_in(line.substr(name.size() + 1)).value_or(0);
  }
  return 0;
}

struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* caches;  // in memory.stat
};
constexpr MemoryFiles kMemory2 = {"memory.max", "memory.current", "inactive_file"};
constexpr MemoryFiles kMemory1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};

void take_memory(const fs::path& folder, const MemoryFiles& files, CgroupLimits& limits) {
  const auto limit = number_of(folder / files.limit);
  if (!limit || *limit >= kAsGoodAsUnlimited) return;
  const std::int64_t caches = value_named(text_of(folder / "memory.stat"), files.caches);
  const std::int64_t used =
      std::max<std::int64_t>(0, number_of(folder / files.used).value_or(0) - caches);
  const bool tighter = limits.memory_bytes == kUnlimited ||
                       *limit - used < limits.memory_bytes - limits.memory_used_bytes;
  if (!tighter) return;
  limits.memory_bytes = *limit;
  limits.memory_used_bytes = used;
}

void take_tasks(const fs::path& folder, CgroupLimits& limits) {
  const auto limit = number_of(folder / "pids.max");
  if (!limit) return;
  const std::int64_t left = *limit - number_of(folder / "pids.current").value_or(0);
  limits.tasks_left = std::min(limits.tasks_left, std::max<std::int64_t>(0, left));
}

void take_quota(double quota, double period, CgroupLimits& limits) {
  if (quota <= 0 || period <= 0) return;
  const double processors = quota / period;
  limits.processors = limits.processors > 0 ? std::min(limits.processors, processors) : processors;
}

void take_processors2(const fs::path& folder, CgroupLimits& limits) {
  std::istringstream words(first_line_of(folder / "cpu.max"));
  std::string quota;
  double period = 0;
  if (words >> quota >> period)
    take_quota(static_cast<double>(number_in(quota).value_or(0)), period, limits);
}

void take_processors1(const fs::path& folder, CgroupLimits& limits) {
  take_quota(static_cast<double>(number_of(folder / "cpu.cfs_quota_us").value_or(0)),
             static_cast<double>(number_of(folder / "cpu.cfs_period_us").value_or(0)), limits);
}

void take_group2(const fs::path& root, const std::string& group, CgroupLimits& limits) {
  for (const fs::path& folder : folders(root, group)) {
    take_memory(folder, kMemory2, limits);
    take_tasks(folder, limits);
    take_processors2(folder, limits);
  }
}

void take_group1(const fs::path& root, const std::string& controllers, const std::string& group,
                 CgroupLimits& limits) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    for (const fs::path& folder : folders(root / name, group)) {
      if (name == "memory") take_memory(folder, kMemory1, limits);
      if (name == "pids") take_tasks(folder, limits);
      if (name == "cpu") take_processors1(folder, limits);
    }
  }
}

}  // namespace

// Lines of /proc/self/cgroup: "4:memory:/group", and "0::/group" of version 2.
CgroupLimits read_cgroup_limits(const fs::path& proc, const fs::path& sys) {
  CgroupLimits limits;
  std::istringstream lines(text_of(proc / "self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty())
      take_group2(sys / "fs/cgroup", group, limits);
    else
      take_group1(sys / "fs/cgroup", controllers, group, limits);
  }
  return limits;
}

}  // namespace sidestream::core
