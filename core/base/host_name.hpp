#pragma once

#include <string>

namespace sidestream::core {

// Of this machine, as it calls itself; "localhost" where it has none.
std::string host_name();

}  // namespace sidestream::core
