// Names of what a process has open: /dev/stdout and /dev/fd/3 are links to /proc/self/fd/1 and 3. A
// file that stands there is open as well, and whoever opened it would not see another one that is
// renamed over its name.
#pragma once

#include <filesystem>

#include "core/base/file.hpp"

namespace sidestream::core {

bool leads_to_open_file(const std::filesystem::path& path);

// What is_stream(), for writing. /dev/stdout goes on where standard output is. Throws Error with
// the system's text.
UniqueFd open_stream(const std::filesystem::path& path);

}  // namespace sidestream::core
