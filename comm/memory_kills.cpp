#include "comm/memory_kills.hpp"

#include <fstream>
#include <string>

namespace sidestream::comm {

std::optional<std::int64_t> memory_kills_of_host(const std::filesystem::path& vmstat) noexcept {
  try {
    std::ifstream file(vmstat);
    std::int64_t value = 0;
    for (std::string name; file >> name >> value;)
      if (name == "oom_kill") return value;
  } catch (...) {  // no memory to read with: not known
  }
  return std::nullopt;
}

}  // namespace sidestream::comm
