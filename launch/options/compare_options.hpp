// What `sidestream-trace compare` can be told.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

struct CompareOptions {
  std::vector<std::filesystem::path> base = {};  // base[i] and fresh[i] are a pair
  std::vector<std::filesystem::path> fresh = {};
  std::filesystem::path json = {};  // empty: none
  std::filesystem::path html = {};  // empty: none
  std::optional<double> fail_if_slower_pct = {};
  int warm_up = 3;
  bool force = false;
  bool quiet = false;
  std::optional<int> threads = {};
  std::string command = {};  // the whole call, as a shell takes it
};

// Throws ConfigError.
CompareOptions parse_compare_options(const std::vector<std::string>& arguments);
std::string compare_help(int width_columns);

}  // namespace sidestream::launch
