#include "profiling/record/background_sampler.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/worker_thread.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::record {

BackgroundSampler::BackgroundSampler(int samples_per_s, NvmlGpu gpu, std::size_t most)
    : interval_ns_(1'000'000'000 / std::max(1, samples_per_s)),
      gpu_(std::move(gpu)),
      most_(most),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

BackgroundSampler::~BackgroundSampler() { thread_.request_stop(); }

void BackgroundSampler::run(const std::stop_token& stop) {
  core::become_worker_thread("ss-sampler");
  SystemSampler sampler(gpu_);
  auto next = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    next += std::chrono::nanoseconds(interval_ns_);
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, stop, next, [] { return false; });
    if (stop.stop_requested()) return;
    lock.unlock();
    std::vector<SystemSample> fresh = sampler.sample();
    lock.lock();
    for (SystemSample& one : fresh) samples_.push_back(std::move(one));
    for (; samples_.size() > most_; ++dropped_) samples_.pop_front();
    next = std::max(next, std::chrono::steady_clock::now());  // a slow reading puts off the next
  }
}

SystemSamples BackgroundSampler::take(std::int64_t until_monotonic_ns) {
  const std::lock_guard lock(mutex_);
  SystemSamples taken{.kept = {}, .dropped = std::exchange(dropped_, 0)};
  while (!samples_.empty() && samples_.front().monotonic_ns <= until_monotonic_ns) {
    taken.kept.push_back(std::move(samples_.front()));
    samples_.pop_front();
  }
  return taken;
}

}  // namespace sidestream::record
