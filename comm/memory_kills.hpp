// Whether the kernel has ended processes of this host for want of memory: who is killed so gets no
// chance to say it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace sidestream::comm {

// So many since the host was started, of any program, by the limit of a control group or of the
// host (`oom_kill` of /proc/vmstat, Linux 4.13). Empty: the kernel does not say.
std::optional<std::int64_t> memory_kills_of_host(
    const std::filesystem::path& vmstat = "/proc/vmstat") noexcept;

}  // namespace sidestream::comm
