#include "launch/reporting/memory_peak.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace sidestream::launch {

std::optional<std::int64_t> current_pss_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "Pss:" && rollup >> kilobytes) return kilobytes * 1024;
    rollup.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::optional<std::int64_t> MemoryPeak::sample() {
  const std::optional<std::int64_t> now_bytes = current_pss_bytes();
  if (now_bytes) peak_bytes_ = std::max(peak_bytes_.value_or(0), *now_bytes);
  return peak_bytes_;
}

}  // namespace sidestream::launch
