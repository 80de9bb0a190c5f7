// Commands that show one run say so when they are given several.
#pragma once

#include <filesystem>
#include <vector>

namespace sidestream::launch {

// The paths as they are. Throws core::ConfigError when they lie in several run directories: figures
// of several runs together are of none of them.
std::vector<std::filesystem::path> inputs_of_one_run(std::vector<std::filesystem::path> inputs);

}  // namespace sidestream::launch
