// What `sidestream generate` can be told: a checkpoint in, text out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

struct GenerateOptions {
  std::filesystem::path checkpoint =
      {};  // checkpoint folder, or run directory (its newest good checkpoint)
  std::string prompt = "";
  std::int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest token
  std::int64_t top_k = 50;   // 0: all
  std::uint64_t seed = 1337;
  std::optional<int> threads = {};  // empty: every core
};

// Throws ConfigError.
GenerateOptions parse_generate_options(const std::vector<std::string>& arguments);
std::string generate_help(int width_columns);

}  // namespace sidestream::launch
