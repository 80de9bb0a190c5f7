// What the profiler costs: the steps it saw against those that it did not see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

class ProfileCost {
 public:
  // The first step of a run is left out: it sets things up.
  void add(std::int64_t step_ns, bool profiled);

  // (profiled - plain) / plain of the medians; nothing without both kinds.
  std::optional<double> share() const;
  // {"plain_steps":8,"plain_step_ms_p50":10.1,"profiled_steps":3,"profiled_step_ms_p50":12.0}, with
  // null for what is not known
  std::string json() const;

 private:
  bool first_ = true;
  std::vector<std::int64_t> plain_ns_;
  std::vector<std::int64_t> profiled_ns_;
};

}  // namespace sidestream::launch
