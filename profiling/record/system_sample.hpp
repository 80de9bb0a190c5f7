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

// What a sampler hands over.
struct SystemSamples {
  std::vector<SystemSample> kept;
  std::uint64_t dropped = 0;  // before these: they found no room
};

}  // namespace sidestream::record
