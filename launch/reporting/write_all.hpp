// A write to a descriptor that is complete or throws.
#pragma once

#include <filesystem>
#include <string_view>

namespace sidestream::launch {

// Goes on after interrupts and partial writes. Throws Error with the system's text; `path` is for
// the message.
void write_all(int fd, std::string_view content, const std::filesystem::path& path);

}  // namespace sidestream::launch
