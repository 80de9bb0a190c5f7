// What the profiler or the recorder costs: the steps it saw against those that it did not see.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace sidestream::launch {

// add() on one thread, the rest on any: a recording may be written while a step runs.
class ProfileCost {
 public:
  // The first step of a run is left out: it sets things up.
  void add(std::int64_t step_ns, bool profiled);

  // Median of the steps without the profiler; nothing before there is one.
  std::optional<double> plain_step_ms() const;
  // (profiled - plain) / plain of the medians; nothing without both kinds.
  std::optional<double> share() const;

 private:
  mutable std::mutex mutex_;
  bool first_ = true;
  std::vector<std::int64_t> plain_ns_;
  std::vector<std::int64_t> profiled_ns_;
};

}  // namespace sidestream::launch
