#include "launch/ceilings/timed_products.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "launch/ceilings/seconds_since.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSmallest = 64, kLargest = 4096;
// One product is no longer than this share of the whole, so that their number can be met.
constexpr double kLongestShare = 1.0 / 8;
constexpr double kMost = 20000;

// Of one, as the shortest of a few: the first of a shape chooses its kernel, threads wake up.
double seconds_of_one(TimedProducts& products, int count) {
  constexpr int kTries = 3;
  double least_s = products.run();
  for (int i = 0; i < kTries; ++i) least_s = std::min(least_s, products.run());
  return least_s / count;
}

}  // namespace

TimedProducts::TimedProducts(const torch::Device& device, torch::ScalarType dtype,
                             std::int64_t extent, int count)
    : device_(device),
      tensors_({.rows = extent, .inner = extent, .columns = extent},
               torch::TensorOptions().dtype(dtype).device(device)),
      count_(count) {}

void TimedProducts::queue() {
  const torch::NoGradGuard no_grad;
  for (int i = 0; i < count_; ++i) torch::mm_out(tensors_.result, tensors_.left, tensors_.right);
}

void TimedProducts::finish() {
  if (device_.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  guard.getStream(device_).synchronize();
}

double TimedProducts::run() {
  const auto begin = Clock::now();
  queue();
  finish();
  return seconds_since(begin);
}

comm::Stream TimedProducts::stream() const {
  if (device_.is_cpu()) return nullptr;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  return guard.getStream(device_).native_handle();
}

TimedProducts TimedProducts::lasting(double seconds, const torch::Device& device,
                                     torch::ScalarType dtype,
                                     const std::function<double(double)>& slowest) {
  const int in_a_row = device.is_cpu() ? 1 : 4;  // the host of a GPU waits once for all
  std::int64_t extent = kSmallest;
  std::optional<double> one_s;
  for (std::int64_t next = kSmallest; next <= kLargest; next *= 2) {
    TimedProducts products(device, dtype, next, in_a_row);
    const double next_s = slowest(seconds_of_one(products, in_a_row));
    if (one_s && next_s > kLongestShare * seconds) break;
    extent = next;
    one_s = next_s;
  }
  const double count = std::clamp(seconds / *one_s, 1.0, kMost);
  return TimedProducts(device, dtype, extent, static_cast<int>(count + 0.5));
}

}  // namespace sidestream::launch
