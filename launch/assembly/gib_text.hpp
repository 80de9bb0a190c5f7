// Amounts of memory as plans and their messages write them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace sidestream::launch {

// "1.2 GiB"
inline std::string gib_text(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace sidestream::launch
