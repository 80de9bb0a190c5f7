// Time that measurements take.
#pragma once

#include <chrono>

namespace sidestream::launch {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sidestream::launch
