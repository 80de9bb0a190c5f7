#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>

#include "launch/ceilings/ceilings.hpp"
#include "model/fused/product.hpp"

namespace sidestream::launch {
namespace {

namespace fused = model::fused;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Work per second of the fastest call: a ceiling is what was reached once, not an average over a
// busy machine.
double best_rate(double budget_s, double work, const std::function<void()>& call) {
  call();  // first call: page faults, library start-up
  double best = 0;
  for (const auto start = Clock::now(); seconds_since(start) < budget_s || best == 0;) {
    const auto begin = Clock::now();
    call();
    best = std::max(best, work / seconds_since(begin));
  }
  return best;
}

// Shapes of a transformer's products: large enough that packing does not count. The faster of
// LibTorch's product and of the one that the fused operators use.
template <typename T>
double product_flops_per_s(torch::ScalarType dtype, double budget_s) {
  constexpr int64_t kRows = 2048, kInner = 1536, kColumns = 1536;
  constexpr double kFlops = 2.0 * kRows * kInner * kColumns;
  const auto options = torch::TensorOptions().dtype(dtype);
  const torch::Tensor left = torch::randn({kRows, kInner}).to(options);
  const torch::Tensor right = torch::randn({kInner, kColumns}).to(options);
  torch::Tensor result = torch::empty({kRows, kColumns}, options);
  const double theirs =
      best_rate(budget_s / 2, kFlops, [&] { torch::mm_out(result, left, right); });
  const auto in_blocks = [&] {
    fused::product_into<T>({.m = kRows, .n = kColumns, .k = kInner},
                           {.data = fused::data_of<T>(left), .stride = kInner},
                           {.data = fused::data_of<T>(right), .stride = kColumns},
                           {fused::data_of<T>(result), kColumns});
  };
  const auto widened = [&] {
    result.copy_(torch::mm(left.to(torch::kFloat32), right.to(torch::kFloat32)));
  };
  const double ours = fused::products_supported(dtype) ? best_rate(budget_s / 2, kFlops, in_blocks)
                                                       : best_rate(budget_s / 2, kFlops, widened);
  return std::max(theirs, ours);
}

}  // namespace

// Of large pieces the C library writes past the caches. LibTorch's copy reads the target before it
// writes it, and reaches two thirds of this.
double measure_memory(double seconds, std::int64_t bytes) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor source = torch::ones({bytes}, torch::kUInt8);
  torch::Tensor target = torch::zeros({bytes}, torch::kUInt8);
  const auto* from = source.const_data_ptr<std::uint8_t>();
  auto* to = target.mutable_data_ptr<std::uint8_t>();
  return best_rate(seconds, 2.0 * static_cast<double>(bytes), [&] {
    at::parallel_for(0, bytes, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
    });
  });
}

Ceilings measure_ceilings(double seconds, bool with_device) {
  constexpr std::int64_t kBeyondAnyCache = 256 << 20;
  const torch::NoGradGuard no_grad;
  return {.processor = processor_name(),
          .cores = at::get_num_threads(),
          .fp32_flops_per_s = product_flops_per_s<float>(torch::kFloat32, seconds),
          .bf16_flops_per_s = product_flops_per_s<core::BFloat16>(torch::kBFloat16, seconds),
          .memory_bytes_per_s = measure_memory(seconds, kBeyondAnyCache),
          .seconds = seconds,
          .device = with_device ? std::optional(measure_device(seconds)) : std::nullopt};
}

}  // namespace sidestream::launch
