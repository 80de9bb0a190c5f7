// Which steps a profiler records that starts and stops while the program runs; launch/nsys-collect
// asks for it. Either a range around them, `capture` in the domain `sidestream`, a registered
// string, from the begin of the first step to the end of the last; or CUDA's own calls, on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "comm/cuda/driver.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {

class CaptureWindow {
 public:
  // "20:30", both included; empty: no window. With a driver, cudaProfilerStart and Stop are called
  // too. Throws ConfigError for anything else.
  explicit CaptureWindow(std::string_view steps,
                         std::shared_ptr<comm::cuda::Driver> driver = nullptr);
  ~CaptureWindow();
  CaptureWindow(const CaptureWindow&) = delete;
  CaptureWindow& operator=(const CaptureWindow&) = delete;

  // What SIDESTREAM_CAPTURE_STEPS says, and SIDESTREAM_CAPTURE_BY (cuda-profiler, or not set).
  static CaptureWindow from_environment();

  std::int64_t first_step() const noexcept { return first_; }
  std::int64_t last_step() const noexcept { return last_; }

  // Around every step, on one thread. A run that starts inside the window records the rest of it.
  void before(std::int64_t step);
  void after(std::int64_t step);

 private:
  void close();

  std::int64_t first_ = 0;  // 0: no window
  std::int64_t last_ = 0;
  std::shared_ptr<comm::cuda::Driver> driver_;
  std::optional<ranges::LayerName> name_;
  std::optional<ranges::ScopedRange> open_;
};

}  // namespace sidestream::launch
