// One reading of the system, as a counter of a trace shows it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sidestream::record {

struct SystemSample {
  std::int64_t monotonic_ns = 0;
  std::string name;  // of the counter, with its unit: "process cpu [%]"
  std::vector<std::pair<std::string, double>> values;
};

}  // namespace sidestream::record
