// A range around several steps for a profiler that starts and stops at a range: `capture` in the
// domain `sidestream`, a registered string, from the begin of the first step to the end of the
// last. launch/nsys-collect asks for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {

class CaptureWindow {
 public:
  // "20:30", both included; empty: no window. Throws ConfigError for anything else.
  explicit CaptureWindow(std::string_view steps);

  // What SIDESTREAM_CAPTURE_STEPS says.
  static CaptureWindow from_environment();

  std::int64_t first_step() const noexcept { return first_; }
  std::int64_t last_step() const noexcept { return last_; }

  // Around every step, on one thread.
  void before(std::int64_t step);
  void after(std::int64_t step);

 private:
  std::int64_t first_ = 0;  // 0: no window
  std::int64_t last_ = 0;
  std::optional<ranges::LayerName> name_;
  std::optional<ranges::ScopedRange> open_;
};

}  // namespace sidestream::launch
