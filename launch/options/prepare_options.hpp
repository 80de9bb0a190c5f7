// What `sidestream prepare` can be told: text files in, token shards out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

struct PrepareOptions {
  std::vector<std::filesystem::path> inputs = {};  // files and folders
  std::filesystem::path output = {};               // folder for shards, made if it is not there
  std::string tokenizer = "bytes";                 // bytes, or path of a tokenizer.json
  std::vector<std::string> include = {};           // globs on file names; empty: every file
  double val_fraction = 0.01;                      // of files, chosen by the seed
  std::int64_t shard_tokens = 100'000'000;
  std::optional<int> threads = {};  // empty: every core
  std::uint64_t seed = 1337;
};

// Throws ConfigError.
PrepareOptions parse_prepare_options(const std::vector<std::string>& arguments);
std::string prepare_help(int width_columns);

}  // namespace sidestream::launch
