#include "core/base/host_name.hpp"

#include <unistd.h>

#include <array>

namespace sidestream::core {

std::string host_name() {
  std::array<char, 256> name{};  // one more than the system allows: there is an end
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name.front() != '\0';
  return known ? name.data() : "localhost";
}

}  // namespace sidestream::core
