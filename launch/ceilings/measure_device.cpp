#include <functional>

#include <torch/cuda.h>

#include "comm/cuda/driver.hpp"
#include "launch/ceilings/best_rate.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {
namespace {

// Of calls that only queue work. A group is long beside the synchronisation after it.
double best_queued_rate(double budget_s, double work, const std::function<void()>& call) {
  constexpr int kGroup = 10;
  return best_rate(budget_s, kGroup * work, [&] {
    for (int i = 0; i < kGroup; ++i) call();
    torch::cuda::synchronize();
  });
}

enum class Tf32 { kOff, kOn };

double device_product_rate(torch::ScalarType dtype, Tf32 tf32, double budget_s) {
  constexpr ProductExtents kExtents = {.rows = 8192, .inner = 8192, .columns = 8192};
  const bool before = at::globalContext().allowTF32CuBLAS();
  at::globalContext().setAllowTF32CuBLAS(tf32 == Tf32::kOn);
  ProductTensors tensors(kExtents, torch::TensorOptions().dtype(dtype).device(torch::kCUDA));
  const double rate = best_queued_rate(budget_s, kExtents.flops(), [&] {
    torch::mm_out(tensors.result, tensors.left, tensors.right);
  });
  at::globalContext().setAllowTF32CuBLAS(before);
  return rate;
}

constexpr int64_t kElements = int64_t{1} << 28;  // 1 GB: beyond any cache

double copy_bytes_per_s(const torch::Tensor& target, const torch::Tensor& source, double factor,
                        double budget_s) {
  const double bytes = factor * static_cast<double>(source.nbytes());
  return best_queued_rate(budget_s, bytes, [&] { target.copy_(source, /*non_blocking=*/true); });
}

}  // namespace

std::string gpu_name() {
  const auto driver = comm::cuda::make_driver();
  return driver->device_count().count > 0 ? driver->properties(0).name : "";
}

DeviceCeilings measure_device(double seconds) {
  const torch::NoGradGuard no_grad;
  DeviceCeilings device{.name = gpu_name()};
  device.flops_per_s = {{"fp32", device_product_rate(torch::kFloat32, Tf32::kOff, seconds)},
                        {"tf32", device_product_rate(torch::kFloat32, Tf32::kOn, seconds)},
                        {"bf16", device_product_rate(torch::kBFloat16, Tf32::kOff, seconds)},
                        {"fp16", device_product_rate(torch::kHalf, Tf32::kOff, seconds)}};
  const torch::Tensor on_device = torch::ones({kElements}, torch::kCUDA);
  const torch::Tensor other = torch::empty({kElements}, torch::kCUDA);
  const torch::Tensor pinned = torch::ones({kElements}).pin_memory();
  device.memory_bytes_per_s = copy_bytes_per_s(other, on_device, 2, seconds);
  device.host_to_device_bytes_per_s = copy_bytes_per_s(on_device, pinned, 1, seconds);
  device.device_to_host_bytes_per_s = copy_bytes_per_s(pinned, on_device, 1, seconds);
  return device;
}

}  // namespace sidestream::launch
