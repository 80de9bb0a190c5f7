// What `sidestream bench` can be told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/device/device_choice.hpp"

namespace sidestream::launch {

enum class BenchSubject { kCeilings, kAllReduce, kAllGather, kReduceScatter };

struct BenchOptions {
  std::optional<BenchSubject> subject = {};           // has to be given
  std::optional<int> threads = {};                    // empty: every core
  double seconds = 1.0;                               // of each measurement
  comm::DeviceWish device = comm::DeviceWish::kAuto;  // under mpirun: whose link
  bool replace = false;  // also with lower figures than those that are stored
};

// Throws ConfigError.
BenchOptions parse_bench_options(const std::vector<std::string>& arguments);
std::string bench_help(int width_columns);

}  // namespace sidestream::launch
