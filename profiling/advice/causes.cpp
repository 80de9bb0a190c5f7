#include "profiling/advice/causes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "profiling/advice/name_words.hpp"

namespace sidestream::advice {
namespace {

constexpr double kHardToGet = 0.6;  // of the roof
constexpr double kNear = 0.75;
constexpr double kTooHigh = 1.05;   // above it the roof is wrong, not the operation fast
constexpr double kLaunchNs = 5000;  // what a launch takes, about
constexpr double kLowOccupancy = 25;
constexpr double kMostSectors = 16;  // of 32 bytes: what a warp needs that loads 16 bytes a thread

double mean_ns_of(const RooflinePoint& point) {
  return point.total_ns / static_cast<double>(std::max<std::int64_t>(1, point.calls));
}

void append(std::string& text, const std::string& more) {
  if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
}

bool has_bound_counters(const NcuCounters& counters) {
  return counters.compute_percent && counters.memory_percent;
}

std::string cause_by_counters(const RooflinePoint& point) {
  const NcuCounters& counters = *point.counters;
  std::string text = has_bound_counters(counters)
                         ? fmt::format("{}-bound by its counters", point.bound)
                         : "what bounds it is not among its counters";
  if (has_bound_counters(counters))
    text += fmt::format(", {:.0f} % of the peak", *point.share_of_roof * 100);
  if (counters.occupancy_percent && *counters.occupancy_percent < kLowOccupancy)
    append(text, fmt::format("occupancy {:.0f} %, limited by {}", *counters.occupancy_percent,
                             counters.occupancy_limiter.empty() ? "(not measured)"
                                                                : counters.occupancy_limiter));
  if (counters.sectors_per_request && *counters.sectors_per_request > kMostSectors)
    append(text, fmt::format("{:.1f} sectors a request: accesses are scattered",
                             *counters.sectors_per_request));
  if (!counters.top_stall.empty()) append(text, "warps wait most for " + counters.top_stall);
  return text;
}

std::string cause_of_product(const RooflinePoint& point, const ComputedOn& computed) {
  constexpr double kMost = 0.5;
  if (!is_product(point.name) || computed.unaligned_share <= kMost) return "";
  return fmt::format("shapes that are no multiples of 8, such as {}", computed.unaligned_shapes);
}

// No cause of the distance to its own roof: a higher roof. What memory bounds does not have it.
std::string higher_roof(const RooflinePoint& point, const ComputedOn& computed,
                        const Facts& facts) {
  constexpr double kWorthIt = 1.3;
  if (!is_product(point.name) || !facts.ceilings || computed.dtype != "fp32") return "";
  if (point.bound == "memory") return "";
  const auto& peaks = facts.ceilings->flops_per_s;
  if (!peaks.contains("bf16") || !peaks.contains("fp32")) return "";
  const double factor = peaks.at("bf16") / peaks.at("fp32");
  return factor > kWorthIt
             ? fmt::format("computed in fp32; the roof of bf16 is {:.1f} times as high", factor)
             : "";
}

// What a report without counters knows about the machine under a slow operation.
std::string cause_of_place(const RooflinePoint& point, const Facts& facts) {
  if (point.occupancy_percent && *point.occupancy_percent < kLowOccupancy)
    return fmt::format(
        "occupancy {:.0f} %{}, estimated by the profiler{}", *point.occupancy_percent,
        point.occupancy_limiter.empty() ? "" : " limited by " + point.occupancy_limiter,
        is_product(point.name) ? ", which products may live with" : "");
  if (facts.on_device) return "";
  const double wanted = facts.threads_per_core();
  if (wanted > 1) return fmt::format("{:.1f} computing threads a core: they take turns", wanted);
  if (facts.step && facts.share_of(facts.step->idle_lock_ns) > 0.05)
    return fmt::format("threads wait for locks in {:.0f} % of the step",
                       facts.share_of(facts.step->idle_lock_ns) * 100);
  constexpr double kSlowed = 0.1;  // denormals cost far more than half
  if (facts.setting("flush-denormals") == "off" && point.share_of_roof.value_or(1) < kSlowed)
    return "denormal numbers are not flushed: with them a product is 25 times slower";
  return "";
}

std::string roof_name(const RooflinePoint& point, const ComputedOn& computed) {
  if (point.bound == "compute") return computed.dtype + " compute";
  return point.bound.empty() ? "memory" : point.bound;
}

std::string share_text(double reached) {
  return reached < 0.01 ? "less than 1 %" : fmt::format("{:.0f} %", reached * 100);
}

std::string far_from_roof(const RooflinePoint& point, const ComputedOn& computed,
                          const Facts& facts) {
  const double reached = *point.share_of_roof;
  std::string why = cause_of_product(point, computed);
  append(why, cause_of_place(point, facts));
  // What it would take at its roof: below this the machine has not begun before it is done.
  constexpr double kSmallNs = 10'000;
  if (why.empty() && mean_ns_of(point) * reached < kSmallNs)
    why = fmt::format("too small to fill the machine: {:.1f} us a call", mean_ns_of(point) * 1e-3);
  if (why.empty())
    why = fmt::format("{} would say why",
                      facts.on_device ? "counters" : "a sampling profiler such as perf");
  return fmt::format("{} of the {} roof; {}", share_text(reached), roof_name(point, computed), why);
}

std::string how_near(const RooflinePoint& point, const ComputedOn& computed) {
  const double reached = *point.share_of_roof;
  if (reached >= kNear) return "near the roof";
  return fmt::format("at {} of the {} roof, of which the rest is hard to get", share_text(reached),
                     roof_name(point, computed));
}

std::string cause_under_roof(const RooflinePoint& point, const ComputedOn& computed,
                             const Facts& facts) {
  const double reached = *point.share_of_roof;
  if (reached > kTooHigh)
    return fmt::format(
        "{:.0f} % of the {} roof: the roof is too low ({}), or the time of the FLOPs is in other "
        "kernels",
        reached * 100, roof_name(point, computed), facts.ceilings->source);
  std::string text;
  if (reached < kHardToGet) {
    text = far_from_roof(point, computed, facts);
  } else if (point.bound == "memory") {
    text = fmt::format("memory-bound and {}: only fewer bytes help (fusion, a smaller dtype)",
                       how_near(point, computed));
  } else {
    text = fmt::format("{}-bound and {}", point.bound.empty() ? "un" : point.bound,
                       how_near(point, computed));
  }
  append(text, higher_roof(point, computed, facts));
  return text;
}

std::string cause_by_name(const RooflinePoint& point, const ComputedOn& computed,
                          const Facts& facts) {
  if (is_phase(point.name))
    return "time of this phase outside of any operator, such as fused code: its work is not in the "
           "trace";
  if (point.name.find("autograd::") != std::string::npos)
    return "a node of autograd without what it calls: a function of one's own, or a hook; its work "
           "is not in the trace";
  if (is_product(point.name)) {
    std::string text = cause_of_product(point, computed);
    append(text, cause_of_place(point, facts));
    append(text, higher_roof(point, computed, facts));
    return text;
  }
  if (has(point.name,
          {"elementwise", "layer_norm", "softmax", "gelu", "dropout", "multi_tensor", "foreach"}))
    return "memory-bound by its kind (name only: FLOPs and bytes are not measured)";
  return cause_of_place(point, facts);
}

std::string cause_of_collective(const RooflinePoint& point, const Facts& facts) {
  std::string text = "a collective: its time is transfer and waiting for other ranks";
  if (!point.share_of_roof || !facts.collectives) return text;
  return text + fmt::format("; {:.3g} GB/s on the bus, {} of the link",
                            facts.collectives->bus_of(point.name).value_or(0) * 1e-9,
                            share_text(*point.share_of_roof));
}

std::string cause_of_copy(const RooflinePoint& point) {
  std::string text = has(point.name, {"ageable"}) ? "copy from memory that is not pinned" : "copy";
  if (point.share_of_roof)
    append(text, fmt::format("{} of what was measured from pinned memory",
                             share_text(*point.share_of_roof)));
  return text;
}

// cuDNN's own kernels before and after a convolution whose tensors lie the other way.
bool changes_layout(const std::string& name) { return has(name, {"nchwToNhwc", "nhwcToNchw"}); }

// What most copies are for, where it is to lay tensors out anew for products.
bool is_layout_copy(const std::string& name, const Facts& facts) {
  constexpr double kMost = 0.5;
  return facts.layout_copies &&
         facts.layout_copies->before_products_ns > kMost * facts.layout_copies->copies_ns &&
         has(name, {"aten::copy_", "aten::contiguous", "aten::clone", "direct_copy_kernel"});
}

}  // namespace

void explain(RooflinePoint& point, const ComputedOn& computed, const Facts& facts) {
  if (is_collective(point.name)) {
    point.bound = "communication";
    point.cause = cause_of_collective(point, facts);
  } else if (changes_layout(point.name)) {
    point.bound = "memory";
    point.cause =
        "turns channels-first tensors round for a convolution: channels-last ones would not need "
        "it";
  } else if (is_layout_copy(point.name, facts)) {
    point.bound = "memory";
    point.cause = fmt::format(
        "transposed layout: tensors are made contiguous for the product after them, {:.3g} ms a "
        "step; products take a transposed matrix as it is",
        facts.layout_copies->before_products_ns * 1e-6);
  } else if (point.counters) {
    point.cause = cause_by_counters(point);
    append(point.cause, cause_of_product(point, computed));
    append(point.cause, higher_roof(point, computed, facts));
  } else if (is_copy(point.name)) {
    point.cause = cause_of_copy(point);
  } else if (facts.on_device && mean_ns_of(point) < kLaunchNs) {
    point.bound = "launch";
    point.cause = fmt::format("{:.1f} us a call: shorter than a launch", mean_ns_of(point) * 1e-3);
  } else if (point.share_of_roof) {
    point.cause = cause_under_roof(point, computed, facts);
  } else {
    point.cause = cause_by_name(point, computed, facts);
  }
}

}  // namespace sidestream::advice
