// What `sidestream summary` can be told: runs to lay side by side.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sidestream::launch {

struct SummaryOptions {
  std::vector<std::filesystem::path> runs =
      {};  // run directories; the first is what the others are compared with
};

// Throws ConfigError.
SummaryOptions parse_summary_options(const std::vector<std::string>& arguments);
std::string summary_help(int width_columns);

}  // namespace sidestream::launch
