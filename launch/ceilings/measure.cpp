#include <algorithm>
#include <cstdint>
#include <cstring>

#include "launch/ceilings/best_rate.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "model/fused/product.hpp"

namespace sidestream::launch {
namespace {

namespace fused = model::fused;

// Shapes of a transformer's products: large enough that packing does not count. The faster of
// LibTorch's product and of the one that the fused operators use.
template <typename T>
double host_product_rate(torch::ScalarType dtype, double budget_s) {
  constexpr ProductExtents kExtents = {.rows = 2048, .inner = 1536, .columns = 1536};
  ProductTensors tensors(kExtents, dtype);
  const double half_s = budget_s / 2, flops = kExtents.flops();
  const double theirs =
      best_rate(half_s, flops, [&] { torch::mm_out(tensors.result, tensors.left, tensors.right); });
  const auto in_blocks = [&] {
    fused::product_into<T>({.m = kExtents.rows, .n = kExtents.columns, .k = kExtents.inner},
                           {.data = fused::data_of<T>(tensors.left), .stride = kExtents.inner},
                           {.data = fused::data_of<T>(tensors.right), .stride = kExtents.columns},
                           {fused::data_of<T>(tensors.result), kExtents.columns});
  };
  const double ours = best_rate(half_s, flops, in_blocks);
  return std::max(theirs, ours);
}

// Without faster units for bf16 the fused operators widen it and multiply in those of fp32: a roof
// of both.
double bf16_rate(double seconds, double fp32_rate) {
  const double measured = host_product_rate<core::BFloat16>(torch::kBFloat16, seconds);
  return fused::has_bf16_units() ? measured : std::max(measured, fp32_rate);
}

// Of numbers that are changed where they are, as the optimizer does it; read + written.
double update_rate(double seconds, std::int64_t bytes) {
  torch::Tensor values = torch::ones({bytes}, torch::kUInt8);
  return best_rate(seconds, 2.0 * static_cast<double>(bytes), [&] { values.bitwise_not_(); });
}

// The faster way counts: an AMD EPYC of Zen 5 copies 42 GB/s and changes 64.
double memory_rate(double seconds) {
  constexpr std::int64_t kBeyondAnyCache = 256 << 20;
  return std::max(measure_copy(seconds / 2, kBeyondAnyCache),
                  update_rate(seconds / 2, kBeyondAnyCache));
}

}  // namespace

// Of large pieces the C library writes past the caches. LibTorch's copy reads the target before it
// writes it, and reaches two thirds of this.
double measure_copy(double seconds, std::int64_t bytes) {
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

Ceilings measure_processor(double seconds) {
  const torch::NoGradGuard no_grad;
  const double fp32_rate = host_product_rate<float>(torch::kFloat32, seconds);
  return {.processor = processor_name(),
          .cores = at::get_num_threads(),
          .fp32_flops_per_s = fp32_rate,
          .bf16_flops_per_s = bf16_rate(seconds, fp32_rate),
          .memory_bytes_per_s = memory_rate(seconds),
          .seconds = seconds};
}

}  // namespace sidestream::launch
