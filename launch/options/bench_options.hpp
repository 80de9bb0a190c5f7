// What `sidestream bench` can be told.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

enum class BenchSubject { kCeilings };

struct BenchOptions {
  BenchSubject subject = BenchSubject::kCeilings;
  std::optional<int> threads = {};  // empty: every core
  double seconds = 1.0;             // of each measurement
};

// Throws ConfigError.
BenchOptions parse_bench_options(const std::vector<std::string>& arguments);
std::string bench_help(int width_columns);

}  // namespace sidestream::launch
