// JSON that is nested deeper than a stack holds calls.
#pragma once

#include <string>

namespace sidestream::core {

inline std::string nested_json(std::size_t levels = 400'000) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace sidestream::core
