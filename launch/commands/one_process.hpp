// Commands of which one process does all.
#pragma once

#include <string>

namespace sidestream::launch {

// Throws ConfigError where a launcher has started several of them.
void require_one_process(const std::string& command);

}  // namespace sidestream::launch
