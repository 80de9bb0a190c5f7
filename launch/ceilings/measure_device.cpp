#include <algorithm>
#include <chrono>
#include <functional>

#include <torch/cuda.h>

#include "comm/cuda/driver.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

// Work per second of the fastest group of calls: a group is long beside the synchronisation after
// it.
double best_rate(double budget_s, double work, const std::function<void()>& call) {
  constexpr int kGroup = 10;
  const auto group = [&] {
    const auto begin = Clock::now();
    for (int i = 0; i < kGroup; ++i) call();
    torch::cuda::synchronize();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  group();  // first calls: libraries load, clocks rise
  double best = 0;
  for (const auto start = Clock::now();
       best == 0 || std::chrono::duration<double>(Clock::now() - start).count() < budget_s;)
    best = std::max(best, kGroup * work / group());
  return best;
}

double product_flops_per_s(torch::ScalarType dtype, bool tf32, double budget_s) {
  constexpr int64_t kExtent = 8192;
  const bool before = at::globalContext().allowTF32CuBLAS();
  at::globalContext().setAllowTF32CuBLAS(tf32);
  const auto options = torch::TensorOptions().dtype(dtype).device(torch::kCUDA);
  const torch::Tensor left = torch::randn({kExtent, kExtent}, options);
  const torch::Tensor right = torch::randn({kExtent, kExtent}, options);
  torch::Tensor result = torch::empty({kExtent, kExtent}, options);
  const double extent = kExtent;
  const double rate = best_rate(budget_s, 2 * extent * extent * extent,
                                [&] { torch::mm_out(result, left, right); });
  at::globalContext().setAllowTF32CuBLAS(before);
  return rate;
}

constexpr int64_t kElements = int64_t{1} << 28;  // 1 GB: beyond any cache

double copy_bytes_per_s(const torch::Tensor& target, const torch::Tensor& source, double factor,
                        double budget_s) {
  const double bytes = factor * static_cast<double>(source.nbytes());
  return best_rate(budget_s, bytes, [&] { target.copy_(source, /*non_blocking=*/true); });
}

}  // namespace

std::string gpu_name() {
  const auto driver = comm::cuda::make_driver();
  return driver->device_count().count > 0 ? driver->properties(0).name : "";
}

DeviceCeilings measure_device(double seconds) {
  const torch::NoGradGuard no_grad;
  DeviceCeilings device{.name = gpu_name()};
  device.flops_per_s = {{"fp32", product_flops_per_s(torch::kFloat32, false, seconds)},
                        {"tf32", product_flops_per_s(torch::kFloat32, true, seconds)},
                        {"bf16", product_flops_per_s(torch::kBFloat16, false, seconds)},
                        {"fp16", product_flops_per_s(torch::kHalf, false, seconds)}};
  const torch::Tensor on_device = torch::ones({kElements}, torch::kCUDA);
  const torch::Tensor other = torch::empty({kElements}, torch::kCUDA);
  const torch::Tensor pinned = torch::ones({kElements}).pin_memory();
  device.memory_bytes_per_s = copy_bytes_per_s(other, on_device, 2, seconds);
  device.host_to_device_bytes_per_s = copy_bytes_per_s(on_device, pinned, 1, seconds);
  device.device_to_host_bytes_per_s = copy_bytes_per_s(pinned, on_device, 1, seconds);
  return device;
}

}  // namespace sidestream::launch
