// What a command is about to write, looked at before it reads anything.
#pragma once

#include <filesystem>
#include <vector>

namespace sidestream::launch {

// Throws ConfigError for an output (empty: not wanted) that is a folder, given twice, or one of the
// inputs or a file inside one of them that a report reads.
void check_outputs(const std::vector<std::filesystem::path>& outputs,
                   const std::vector<std::filesystem::path>& inputs);

}  // namespace sidestream::launch
