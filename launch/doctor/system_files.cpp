#include "launch/doctor/system_files.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "comm/shared_window.hpp"
#include "core/base/cgroup_limits.hpp"
#include "core/base/host_memory.hpp"
#include "core/base/small_file.hpp"

namespace sidestream::launch::doctor {
namespace {

namespace fs = std::filesystem;
using core::first_line_of;
using core::number_of;
using core::read_cgroup_limits;

// "always [madvise] never": the word in brackets.
std::string chosen_in(const std::string& line) {
  const std::size_t begin = line.find('['), end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return line.substr(begin + 1, end - begin - 1);
}

template <typename Resource>
std::int64_t limit_of(Resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  constexpr auto kMost = static_cast<rlim_t>(kUnlimited);
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

template <typename Visit>
void for_each_entry(const fs::path& folder, const Visit& visit) {
  std::error_code gone;
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone))
    visit(entry->path());
}

void take_link(const std::string& name, double bytes_per_s, NetworkFacts& network) {
  if (bytes_per_s <= network.bytes_per_s) return;
  network.fastest = name;
  network.bytes_per_s = bytes_per_s;
}

// "200 Gb/sec (4X HDR)"
void take_adapter(const fs::path& adapter, NetworkFacts& network) {
  for_each_entry(adapter / "ports", [&](const fs::path& port) {
    network.remote_memory = true;
    const auto gigabits = number_of(port / "rate");
    if (first_line_of(port / "state").find("ACTIVE") == std::string::npos) return;
    take_link(adapter.filename().string(), static_cast<double>(gigabits.value_or(0)) * 1e9 / 8,
              network);
  });
}

// NVIDIA's devices that compute: 3D controllers and graphics cards.
bool is_gpu(const fs::path& device) {
  const std::string kind = first_line_of(device / "class");
  return first_line_of(device / "vendor") == "0x10de" &&
         (kind.starts_with("0x0302") || kind.starts_with("0x0300"));
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 ..."
std::string driver_version(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool number = word.find('.') != std::string::npos &&
                        word.find_first_not_of("0123456789.") == std::string::npos;
    if (number) return word;
  }
  return line;
}

}  // namespace

MemoryFacts read_memory(const SystemFolders& folders) {
  const core::HostMemory memory = core::read_host_memory(folders.proc, folders.sys);
  const fs::path huge_pages = folders.sys / "kernel/mm/transparent_hugepage";
  return {.available_bytes = memory.available_bytes,
          .limit_bytes = memory.limit_bytes,
          .limit_used_bytes = memory.limit_used_bytes,
          .shared_free_bytes =
              static_cast<std::int64_t>(comm::shared_memory_free_bytes(folders.shared_memory)),
          .huge_pages = chosen_in(first_line_of(huge_pages / "enabled")),
          .huge_pages_of_files = chosen_in(first_line_of(huge_pages / "shmem_enabled"))};
}

LimitFacts read_limits(const SystemFolders& folders) {
  const std::int64_t left_in_group = read_cgroup_limits(folders.proc, folders.sys).tasks_left;
  const std::int64_t of_user = geteuid() == 0 ? kUnlimited : limit_of(RLIMIT_NPROC);
  return {.open_files = limit_of(RLIMIT_NOFILE),
          .locked_bytes = limit_of(RLIMIT_MEMLOCK),
          .file_bytes = limit_of(RLIMIT_FSIZE),
          .address_bytes = limit_of(RLIMIT_AS),
          .tasks = std::min(left_in_group, of_user)};
}

NetworkFacts read_network(const SystemFolders& folders) {
  NetworkFacts network;
  for_each_entry(folders.sys / "class/net", [&](const fs::path& link) {
    if (first_line_of(link / "operstate") == "down") return;
    const auto megabits = number_of(link / "speed");  // -1: it does not know
    take_link(link.filename().string(), static_cast<double>(megabits.value_or(0)) * 1e6 / 8,
              network);
  });
  for_each_entry(folders.sys / "class/infiniband",
                 [&](const fs::path& adapter) { take_adapter(adapter, network); });
  return network;
}

std::string read_clock_source(const SystemFolders& folders) {
  return first_line_of(folders.sys / "devices/system/clocksource/clocksource0/current_clocksource");
}

ProcessorFacts read_processor(const SystemFolders& folders) {
  ProcessorFacts processor;
  processor.quota = read_cgroup_limits(folders.proc, folders.sys).processors;
  std::istringstream(first_line_of(folders.proc / "loadavg")) >> processor.load;
  processor.governor =
      first_line_of(folders.sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return processor;
}

GpuFacts read_gpus(const SystemFolders& folders) {
  GpuFacts gpus;
  for_each_entry(folders.sys / "bus/pci/devices",
                 [&](const fs::path& device) { gpus.on_bus += is_gpu(device) ? 1 : 0; });
  gpus.driver = driver_version(first_line_of(folders.proc / "driver/nvidia/version"));
  return gpus;
}

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace sidestream::launch::doctor
