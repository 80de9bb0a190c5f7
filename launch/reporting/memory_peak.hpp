// Memory of this process as proportional set size: pages shared with other ranks count by their
// share, so that the sum over the ranks of a node is what the node uses.
#pragma once

#include <cstdint>
#include <optional>

namespace sidestream::launch {

// The Pss line of /proc/self/smaps_rollup in bytes; empty where the system has no such file.
std::optional<std::int64_t> current_pss_bytes();

class MemoryPeak {
 public:
  // Looks now and returns the highest so far. The kernel walks all mappings: milliseconds for tens
  // of GB.
  std::optional<std::int64_t> sample();

 private:
  std::optional<std::int64_t> peak_bytes_;
};

}  // namespace sidestream::launch
