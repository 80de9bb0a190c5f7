// How well the device, or the processor, is used: precision, shapes, occupancy, memory.
#include <algorithm>
#include <iterator>

#include "profiling/advice/rule.hpp"

namespace sidestream::advice {
namespace {

constexpr const char* kNeedsShapes = "shapes of operators in the traces (--profile-shapes)";

// Products were called, and no kernel has a name of the list: a library's new one.
bool has_unknown_kernels(const Facts& facts) {
  return facts.on_device && facts.kernels && facts.kernels->matrix_ns == 0 && facts.products &&
         facts.products->flops > 0;
}

const char* needs_product_time(const Facts& facts) {
  return has_unknown_kernels(facts) ? "kernels of matrix products with a name that is known"
                                    : kNeedsShapes;
}

// Time of a step in matrix products: their kernels, or on host ranks their operators.
std::optional<double> product_time(const Facts& facts) {
  if (has_unknown_kernels(facts)) return std::nullopt;
  if (facts.on_device && facts.kernels) return facts.kernels->matrix_ns;
  if (facts.products) return facts.products->host_ns;
  return std::nullopt;
}

// How many times as fast bf16 is by the ceilings; nothing where they do not say.
std::optional<double> bf16_factor(const Facts& facts) {
  if (!facts.ceilings) return std::nullopt;
  const auto& peaks = facts.ceilings->flops_per_s;
  const auto bf16 = peaks.find("bf16"), fp32 = peaks.find("fp32");
  if (bf16 == peaks.end() || fp32 == peaks.end() || fp32->second <= 0) return std::nullopt;
  return bf16->second / fp32->second;
}

// What half the bytes save besides the products, at most: half of the other compute (attention,
// element-wise operators), and of the exposed communication what products or bytes do.
double saved_beside_products(const Facts& facts, double product_ns, double saved_share) {
  constexpr double kHalf = 0.5;
  return std::max(0.0, facts.step->compute_ns - product_ns) * kHalf +
         facts.step->exposed_comm_ns * std::max(kHalf, saved_share);
}

Outcome no_amp(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  const auto time = product_time(facts);
  if (!time) return could_not_look(needs_product_time(facts));
  const auto factor = bf16_factor(facts);
  double fp32 = 0;
  if (facts.on_device) {
    constexpr int kVolta = 70;
    if (!facts.tensor_core_share || !facts.compute_capability)
      return could_not_look("device properties in the traces");
    if (*facts.compute_capability < kVolta || *facts.tensor_core_share > 0) return nothing_found();
    fp32 = 1;
  } else {
    if (!facts.products || facts.products->flops == 0) return could_not_look(kNeedsShapes);
    if (!factor) return could_not_look("what the processor can do (`sidestream bench ceilings`)");
    fp32 = facts.products->fp32_flops / facts.products->flops;
  }
  constexpr double kWorthIt = 1.3;
  const double saved = factor ? 1 - 1 / *factor : 1;  // of a product; unknown: all of it
  const double in_products = facts.share_of(*time * fp32) * saved;
  if (factor.value_or(kWorthIt) < kWorthIt || in_products <= rule.threshold) return nothing_found();
  const double beside = facts.share_of(saved_beside_products(facts, *time, saved)) * fp32;
  Found what{.bound = std::min(1.0, in_products + beside),
             .evidence = {share("matrix products", facts.share_of(*time)),
                          share("of them in fp32", fp32, "products")}};
  if (factor) what.evidence.push_back({"the roof of bf16 is higher by", *factor, "x"});
  if (beside > 0) what.evidence.push_back(share("saved beside products, at most", beside));
  return found(what);
}

Outcome shapes(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  const auto time = product_time(facts);
  if (!facts.products || !time || facts.products->flops == 0)
    return could_not_look(needs_product_time(facts));
  const double part = facts.products->unaligned_flops / facts.products->flops;
  const double bound = facts.share_of(*time) * part;
  if (bound <= rule.threshold) return nothing_found();
  return found({.bound = bound,
                .evidence = {share("products with such shapes", bound),
                             share("of all products", part, "FLOPs"),
                             {"largest: " + facts.products->unaligned_shape,
                              facts.products->unaligned_flops, "FLOP"}}});
}

// Tensor Cores of A100 and later read whole lines; those before are content with 8 elements.
Outcome lines(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.on_device) return nothing_found();
  const auto time = product_time(facts);
  if (!facts.products || !time || facts.products->flops == 0)
    return could_not_look(needs_product_time(facts));
  if (!facts.compute_capability) return could_not_look("device properties in the traces");
  constexpr int kAmpere = 80;
  const double part = facts.products->off_line_flops / facts.products->flops;
  const double bound = facts.share_of(*time) * part;
  if (*facts.compute_capability < kAmpere || bound <= rule.threshold) return nothing_found();
  return found({.bound = bound,
                .evidence = {share("products with such shapes", bound),
                             share("of all products", part, "FLOPs"),
                             {"largest: " + facts.products->off_line_shape,
                              facts.products->off_line_flops, "FLOP"}}});
}

std::string limited_by(const std::string& limiter) {
  return limiter.empty() ? "" : ", limited by " + limiter;
}

Outcome occupancy(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_kernels(facts)) return *nothing;
  const double time = facts.share_of(facts.kernels->low_occupancy_ns);
  if (!facts.traces.occupancies) return could_not_look("occupancy of kernels in the traces");
  if (time <= rule.threshold) return nothing_found();
  return found({.bound = time,
                .evidence = {share("kernels below 25 % occupancy, without products", time),
                             {"the longest of them: " + facts.kernels->low_occupancy_kernel +
                                  limited_by(facts.kernels->low_occupancy_limiter),
                              facts.kernels->low_occupancy_percent, "%"}}});
}

Outcome small_kernels(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_kernels(facts)) return *nothing;
  const double time = facts.share_of(facts.kernels->short_ns);
  if (time <= rule.threshold) return nothing_found();
  // Fewer launches also leave less idle time between them.
  const double idle = facts.step ? facts.share_of(facts.step->idle_host_ns) : 0;
  return found({.bound = std::min(1.0, time + idle),
                .evidence = {share("kernels below 10 us, without products", time),
                             share("idle because nothing was launched", idle),
                             {"such kernels", facts.kernels->short_per_step, "", "step"}}});
}

Outcome channels_first(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_kernels(facts)) return *nothing;
  const double time = facts.share_of(facts.kernels->layout_ns);
  if (time <= rule.threshold) return nothing_found();
  return found({.bound = time, .evidence = {share("kernels that turn tensors round", time)}});
}

Outcome convolution_choice(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_kernels(facts)) return *nothing;
  if (facts.kernels->convolution_ns == 0) return could_not_look("convolutions in the traces");
  const double time = facts.share_of(facts.kernels->convolution_ns);
  if (time <= rule.threshold) return nothing_found();
  return found({.bound = time, .evidence = {share("convolutions", time)}});
}

// Of the step, where it is known what the device did.
std::optional<double> idle_share(const Facts& facts) {
  if (!facts.step || facts.traces.hidden_kernels) return std::nullopt;
  return facts.share_of(facts.step->idle_ns);
}

Outcome memory_full(const Facts& facts, const Rule& rule) {
  if (facts.traces.without_device) return could_not_look(kNeedsDevice);
  if (!facts.on_device) return nothing_found();
  if (!facts.memory_share) return could_not_look("memory events (--profile-memory)");
  if (*facts.memory_share <= rule.threshold) return nothing_found();
  // An allocator at the edge frees and asks again, while the device has nothing to do.
  return found({.bound = idle_share(facts),
                .evidence = {share("peak", *facts.memory_share, "device memory")}});
}

Outcome memory_free(const Facts& facts, const Rule& rule) {
  if (facts.traces.without_device) return could_not_look(kNeedsDevice);
  if (!facts.on_device) return nothing_found();
  if (facts.traces.hidden_kernels) return could_not_look(analysis::kNeedsGraphNodes);
  if (!facts.memory_share || !facts.gpu_utilisation)
    return could_not_look("memory events (--profile-memory)");
  constexpr double kBusy = 0.5;  // TensorBoard plugin: GPU utilisation below 50 %
  if (*facts.memory_share >= rule.threshold || *facts.gpu_utilisation >= kBusy)
    return nothing_found();
  return found({.bound = idle_share(facts),
                .evidence = {share("peak", *facts.memory_share, "device memory"),
                             share("device busy", *facts.gpu_utilisation)}});
}

const Rule kDeviceRules[] = {
    {"no-amp", "Matrix products in fp32 where bf16 is at hand", 0.03,
     "time in fp32 products that the faster type would save, with what half the bytes save "
     "besides",
     "TensorBoard plugin: no Tensor Core time on compute capability 7.0 or later",
     "--precision bf16", "the model does not converge in bf16",
     "`verify` with --new \"--precision bf16\": step time and loss", no_amp, PlaceKind::kProduct},
    {"shapes", "Shapes that are no multiples of 8", 0.03,
     "time in products of which an extent is no multiple of 8",
     "NVIDIA's guide to matrix products: 16 bytes, 8 elements of bf16",
     "--pad-vocab 64; widths and batches in multiples of 8",
     "the library pads them itself at no cost", "time of these products", shapes,
     PlaceKind::kUnaligned},
    {"shapes-64", "Shapes that are multiples of 8, but not of 64", 0.10,
     "time in products of which an extent is a multiple of 8 and not of 128 bytes (64 elements "
     "of "
     "bf16), on compute capability 8.0 or later",
     "NVIDIA's guide to matrix products: multiples of 128 bytes are best on A100; a tenth, "
     "because "
     "only the edges of tiles are lost",
     "--pad-vocab 64; widths, heads and batches in multiples of 64",
     "the library's tiles fit these shapes all the same", "time of these products", lines,
     PlaceKind::kOffLine},
    {"low-occupancy", "Kernels that leave most of the device empty", 0.05,
     "time in kernels below 25 % estimated occupancy, without matrix products",
     "a quarter: memory latency is no longer hidden",
     "a larger batch, or fused operators (--fused-ops on)",
     "the kernel needs its registers, as flash attention does", "ncu: occupancy and its limiter",
     occupancy, PlaceKind::kLowOccupancy},
    {"small-kernels", "Many kernels too small to be worth a launch", 0.10,
     "time in kernels below 10 us that are no products", "a launch takes about 5 us: twice that",
     "--fused-ops on, or --cuda-graph on", "they run beside others", "kernels of a step",
     small_kernels, PlaceKind::kSmallKernel},
    {"channels-first", "Tensors are turned round for convolutions", 0.03,
     "time in nchwToNhwc and nhwcToNchw kernels",
     "NVIDIA's guide to convolutions: channels last is what Tensor Cores read",
     "channels-last tensors (memory_format=channels_last)", "the data comes channels-first once",
     "kernels named nchwToNhwc", channels_first, PlaceKind::kLayoutKernel},
    {"convolution-choice", "Convolutions by the first algorithm that fits", 0.10,
     "time in convolutions",
     "where a tenth of the step is at stake, a search pays in the first steps",
     "torch.backends.cudnn.benchmark = True",
     "it is on already, which no trace says, or the heuristic had chosen the fastest one",
     "time in convolutions", convolution_choice, PlaceKind::kConvolution},
    {"memory-full", "Device memory is nearly full", 0.9, "peak over the memory of the device",
     "TensorBoard plugin: above 90 %",
     "--recompute, --loss-chunks auto, --optimizer-state-dtype bf16, --zero 1, a smaller batch",
     "the allocator only keeps it", "reserved against allocated", memory_full, PlaceKind::kStep},
    {"memory-free", "A larger batch would fit", 0.5,
     "peak over the memory of the device, where it is busy less than half the time",
     "TensorBoard plugin: GPU utilisation below 50 %", "a larger --batch-size-per-rank",
     "the batch is part of the recipe", "`verify` step time per sample", memory_free,
     PlaceKind::kStep}};

}  // namespace

std::vector<Rule> device_rules() { return {std::begin(kDeviceRules), std::end(kDeviceRules)}; }

}  // namespace sidestream::advice
