// What a command is about to write, looked at before it reads anything.
#pragma once

#include <filesystem>
#include <vector>

namespace sidestream::launch {

// Throws ConfigError for an output (empty: not wanted) that is a folder, given twice, or one of the
// files that are read: an input, a trace inside of one, or what the run of one says of itself.
void check_outputs(const std::vector<std::filesystem::path>& outputs,
                   const std::vector<std::filesystem::path>& inputs);

}  // namespace sidestream::launch
