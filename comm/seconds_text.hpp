// A time as messages say it: "4.1 s", whole tenths that have passed.
#pragma once

#include <chrono>
#include <string>

namespace sidestream::comm {

inline std::string seconds_text(std::chrono::nanoseconds time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace sidestream::comm
