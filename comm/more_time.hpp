// The end of the message of a deadline: what to do about it.
#pragma once

#include <string>
#include <string_view>

namespace sidestream::comm {

// ". --timeout-step gives slow ranks more time"; nothing where there is no such flag.
inline std::string more_time(std::string_view flag) {
  return flag.empty() ? "" : ". " + std::string(flag) + " gives slow ranks more time";
}

}  // namespace sidestream::comm
