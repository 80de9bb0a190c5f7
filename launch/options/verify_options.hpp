// What `sidestream verify` can be told.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/options/flag.hpp"

namespace sidestream::launch {

struct VerifyOptions {
  std::filesystem::path config = {};
  int ranks = 1;
  std::string hosts = {};           // as mpirun takes them; empty: this machine
  std::vector<std::string> common;  // flags of `train` for both sides
  std::vector<std::string> base;
  std::vector<std::string> fresh;
  int blocks = 5;
  std::int64_t steps = 30;
  int warm_up = 5;
  std::uint64_t seed = 1;             // of the first block; each block has the next one
  std::filesystem::path output = {};  // empty: default_output() of output_folder.hpp
  std::filesystem::path log = {};  // decision log; empty: decisions.jsonl beside the output folder
  std::optional<double> fail_if_slower_pct = {};
  bool profile = true;  // one more run of each side, with every operator of a few steps
  bool prove = true;    // advice that the base waits for input, by runs on one batch
  bool force = false;
  bool dry_run = false;
  std::vector<Given> of_file = {};  // what the file says, once it is read: verify/file_settings.hpp
};

// Throws ConfigError.
VerifyOptions parse_verify_options(const std::vector<std::string>& arguments);
std::string verify_help(int width_columns);

}  // namespace sidestream::launch
