// Memory of this process as proportional set size: pages shared with other ranks count by their
// share, so that the sum over the ranks of a node is what the node uses.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace sidestream::launch {

// The Pss line of /proc/self/smaps_rollup in bytes; empty where the system has no such file. The
// kernel walks all mappings: 4 to 60 ms for the models that fit a small machine, more for large
// ones.
std::optional<std::int64_t> current_pss_bytes();
// The VmHWM line of /proc/self/status in bytes: what was resident at most. Some microseconds.
std::optional<std::int64_t> most_resident_bytes();

// Where the figures and the time come from: this process, or a test.
struct MemorySource {
  std::function<std::optional<std::int64_t>()> pss_bytes = current_pss_bytes;
  std::function<std::optional<std::int64_t>()> most_resident_bytes = launch::most_resident_bytes;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// Walks are rare, because all ranks wait for the one that walks: only when more memory was resident
// than ever before, and not before 500 times the duration of the last walk have passed (0.2 % of
// the time). A peak that falls into such a pause is seen late, or by its resident part only.
class MemoryPeak {
 public:
  explicit MemoryPeak(MemorySource source = {}) : source_(std::move(source)) {}

  // The highest proportional set size seen.
  std::optional<std::int64_t> sample();

 private:
  void walk(std::chrono::steady_clock::time_point start);

  MemorySource source_;
  std::optional<std::int64_t> peak_bytes_;
  std::optional<std::int64_t> resident_bytes_;  // at the last walk
  std::chrono::steady_clock::time_point next_walk_{};
};

}  // namespace sidestream::launch
