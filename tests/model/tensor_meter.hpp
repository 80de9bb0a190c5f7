// What the tensors of a thread take while something runs, as LibTorch's allocator hands it out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace sidestream::test {

// Bytes that the calling thread allocates, less those that it releases.
struct TensorMeter : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* /*block*/, std::int64_t bytes, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    now += bytes;
    peak = std::max(peak, now);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t now = 0, peak = 0;
};

// The most that `work` has at a time.
inline std::int64_t peak_bytes(const std::function<void()>& work) {
  const auto meter = std::make_shared<TensorMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  work();
  return meter->peak;
}

}  // namespace sidestream::test
