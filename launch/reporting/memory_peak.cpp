#include "launch/reporting/memory_peak.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace sidestream::launch {

namespace {

std::optional<std::int64_t> bytes_in(const char* file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string word; lines >> word;) {
    std::int64_t kilobytes = 0;
    if (word == key && lines >> kilobytes) return kilobytes * 1024;
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> current_pss_bytes() {
  return bytes_in("/proc/self/smaps_rollup", "Pss:");
}

std::optional<std::int64_t> most_resident_bytes() {
  return bytes_in("/proc/self/status", "VmHWM:");
}

std::optional<std::int64_t> MemoryPeak::sample() {
  const auto now = source_.now();
  const auto resident = source_.most_resident_bytes();
  const bool more = !resident || !resident_bytes_ || *resident > *resident_bytes_;
  if (!peak_bytes_ || (more && now >= next_walk_)) {
    resident_bytes_ = resident;
    walk(now);
  }
  return peak_bytes_;
}

void MemoryPeak::walk(std::chrono::steady_clock::time_point start) {
  constexpr int kPauseOfWalks = 500;
  const std::optional<std::int64_t> now_bytes = source_.pss_bytes();
  if (now_bytes) peak_bytes_ = std::max(peak_bytes_.value_or(0), *now_bytes);
  const auto end = source_.now();
  next_walk_ = end + kPauseOfWalks * (end - start);
}

}  // namespace sidestream::launch
