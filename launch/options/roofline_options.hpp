// What `sidestream-trace roofline` can be told.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

struct RooflineOptions {
  std::vector<std::filesystem::path> inputs = {};
  std::vector<std::filesystem::path> ncu = {};  // CSV of Nsight Compute; empty: none
  std::filesystem::path json = {};              // empty: none
  std::filesystem::path html = {};              // empty: none
  int operations = 5;
  std::optional<int> threads = {};
};

// Throws ConfigError.
RooflineOptions parse_roofline_options(const std::vector<std::string>& arguments);
std::string roofline_help(int width_columns);

}  // namespace sidestream::launch
