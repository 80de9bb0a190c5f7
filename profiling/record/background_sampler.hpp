// Takes samples of the system at a fixed rate on a thread of its own, and keeps the newest of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "profiling/record/system_sampler.hpp"

namespace sidestream::record {

class BackgroundSampler {
 public:
  static constexpr std::size_t kMostSamples = 1 << 16;

  // gpu: the device of this process. Of more than `most` samples the oldest go, and are counted.
  BackgroundSampler(int samples_per_s, NvmlGpu gpu, std::size_t most = kMostSamples);
  ~BackgroundSampler();
  BackgroundSampler(const BackgroundSampler&) = delete;
  BackgroundSampler& operator=(const BackgroundSampler&) = delete;

  // Those up to this time that were not taken before.
  SystemSamples take(std::int64_t until_monotonic_ns);

 private:
  void run(const std::stop_token& stop);

  std::int64_t interval_ns_;
  NvmlGpu gpu_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<SystemSample> samples_;
  std::uint64_t dropped_ = 0;  // since the last take
  std::jthread thread_;        // last: started when the rest exists
};

}  // namespace sidestream::record
