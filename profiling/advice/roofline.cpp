#include "profiling/advice/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "profiling/ranges/phases.hpp"
#include "profiling/trace/kind.hpp"

namespace sidestream::advice {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNear = 0.6;            // of the roof: what is left is hard to get
constexpr double kShortKernelNs = 5000;  // a launch takes about as long
constexpr double kLowOccupancy = 25, kPoorSectors = 8;

std::optional<double> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

bool has(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

bool is_copy(const std::string& name) {
  return name.starts_with("Memcpy") || name.starts_with("Memset");
}

bool is_product(const std::string& name) {
  static const std::set<std::string> operators = {"aten::mm",
                                                  "aten::addmm",
                                                  "aten::bmm",
                                                  "aten::linear",
                                                  "aten::convolution",
                                                  "aten::baddbmm",
                                                  "sidestream::linear",
                                                  "sidestream::mlp",
                                                  "sidestream::linear_backward",
                                                  "sidestream::mlp_backward",
                                                  "sidestream::head_loss",
                                                  "sidestream::head_loss_and_gradients"};
  return operators.contains(name) ||
         has(name, {"gemm", "Gemm", "GEMM", "xmma", "cutlass", "convolve"});
}

std::string dtype_of(const Facts& facts) {
  const auto precision = facts.setting("precision");
  return precision ? *precision : "fp32";
}

void place_under_roof(RooflinePoint& point, const Facts& facts) {
  if (!point.flops_per_s || !point.bytes_per_s || *point.bytes_per_s <= 0) return;
  point.intensity = *point.flops_per_s / *point.bytes_per_s;
  if (!facts.ceilings || facts.ceilings->memory_bytes_per_s <= 0) return;
  const auto peak = facts.ceilings->flops_per_s.find(dtype_of(facts));
  if (peak == facts.ceilings->flops_per_s.end()) return;
  const double slope = *point.intensity * facts.ceilings->memory_bytes_per_s;
  point.bound = slope < peak->second ? "memory" : "compute";
  point.share_of_roof = *point.flops_per_s / std::min(slope, peak->second);
}

// Of operations that only move bytes. Far below the bandwidth something else holds them up.
void place_by_bandwidth(RooflinePoint& point, const Facts& facts) {
  constexpr double kHeldUpByMemory = 0.3;
  if (!point.bound.empty() || !point.bytes_per_s || point.flops_per_s || is_copy(point.name))
    return;
  if (!facts.ceilings || facts.ceilings->memory_bytes_per_s <= 0) return;
  point.share_of_roof = *point.bytes_per_s / facts.ceilings->memory_bytes_per_s;
  if (*point.share_of_roof >= kHeldUpByMemory) point.bound = "memory";
}

// Counters are of the hardware: what they say holds, whatever the shapes say.
void replace_by_counters(RooflinePoint& point) {
  if (!point.counters) return;
  const NcuCounters& counters = *point.counters;
  if (counters.dram_bytes && counters.duration_s && *counters.duration_s > 0)
    point.bytes_per_s = *counters.dram_bytes / *counters.duration_s;
  if (!counters.compute_percent || !counters.memory_percent) return;
  const bool memory = *counters.memory_percent > *counters.compute_percent;
  point.bound = memory ? "memory" : "compute";
  point.share_of_roof = std::max(*counters.memory_percent, *counters.compute_percent) / 100;
}

std::string cause_by_counters(const RooflinePoint& point) {
  const NcuCounters& counters = *point.counters;
  std::string text =
      fmt::format("{}-bound by its counters", point.bound.empty() ? "un" : point.bound);
  if (point.share_of_roof)
    text += fmt::format(", {:.0f} % of the peak", *point.share_of_roof * 100);
  if (counters.occupancy_percent && *counters.occupancy_percent < kLowOccupancy)
    text += fmt::format(
        "; occupancy {:.0f} %, limited by {}", *counters.occupancy_percent,
        counters.occupancy_limiter.empty() ? "(not measured)" : counters.occupancy_limiter);
  if (counters.sectors_per_request && *counters.sectors_per_request > kPoorSectors)
    text += fmt::format("; {:.1f} sectors a request: accesses are scattered",
                        *counters.sectors_per_request);
  if (!counters.top_stall.empty()) text += "; warps wait most for " + counters.top_stall;
  return text;
}

std::string cause_of_product(const RooflinePoint& point, const Facts& facts) {
  const auto& products = facts.products;
  constexpr double kMost = 0.5;
  if (products && products->flops > 0 && products->unaligned_flops > kMost * products->flops)
    return fmt::format("shapes that are no multiples of 8, such as {}", products->unaligned_shape);
  if (products && products->flops > 0 && products->fp32_flops > kMost * products->flops &&
      facts.ceilings && facts.ceilings->flops_per_s.contains("bf16"))
    return "fp32, where bf16 is at hand";
  if (point.name.find("sgemm") != std::string::npos) return "fp32 product, no Tensor Cores";
  return "";
}

std::string cause_under_roof(const RooflinePoint& point, const Facts& facts) {
  const double reached = *point.share_of_roof;
  if (reached >= kNear)
    return point.bound == "memory"
               ? "memory-bound and near the roof: only fewer bytes help (fusion, a smaller dtype)"
               : "compute-bound and near the roof";
  if (is_product(point.name)) {
    const std::string why = cause_of_product(point, facts);
    if (!why.empty()) return why;
  }
  const double mean_ns =
      point.total_ns / static_cast<double>(std::max<std::int64_t>(1, point.calls));
  constexpr double kSmallNs = 50'000;
  if (mean_ns < kSmallNs) return "too small to fill the machine";
  const std::string share =
      reached < 0.01 ? "less than 1 %" : fmt::format("{:.0f} %", reached * 100);
  return fmt::format("{} of the {} roof; {} would say why", share,
                     point.bound.empty() ? "memory" : point.bound,
                     facts.on_device ? "counters" : "a sampling profiler such as perf");
}

bool is_phase(const std::string& name) {
  return std::any_of(ranges::kPhases.begin(), ranges::kPhases.end(),
                     [&](const ranges::PhaseInfo& phase) { return phase.name == name; });
}

std::string cause_by_name(const RooflinePoint& point, const Facts& facts) {
  if (is_phase(point.name))
    return "time of this phase outside of any operator, such as fused code: its work is not in the "
           "trace";
  if (point.name.find("autograd::") != std::string::npos)
    return "a node of autograd without what it calls: a function of one's own, or a hook; its work "
           "is not in the trace";
  if (is_product(point.name)) return cause_of_product(point, facts);
  if (has(point.name,
          {"elementwise", "layer_norm", "softmax", "gelu", "dropout", "multi_tensor", "foreach"}))
    return "memory-bound by its kind (name only: FLOPs and bytes are not measured)";
  return "";
}

void explain(RooflinePoint& point, const Facts& facts) {
  const double mean_ns =
      point.total_ns / static_cast<double>(std::max<std::int64_t>(1, point.calls));
  if (trace::is_collective_kernel(point.name)) {
    point.bound = "communication";
    point.cause = "a collective: its time is transfer and waiting for other ranks";
  } else if (point.counters) {
    point.cause = cause_by_counters(point);
  } else if (is_copy(point.name)) {
    point.cause = has(point.name, {"ageable"}) ? "copy from memory that is not pinned" : "copy";
  } else if (facts.on_device && mean_ns < kShortKernelNs) {
    point.bound = "launch";
    point.cause = fmt::format("{:.1f} us a call: shorter than a launch", mean_ns * 1e-3);
  } else {
    point.cause =
        point.share_of_roof ? cause_under_roof(point, facts) : cause_by_name(point, facts);
  }
}

}  // namespace

RooflinePoint place_operation(const Json& operation, const Facts& facts,
                              const NcuByFunction& counters) {
  RooflinePoint point{.name = operation.at("name").get<std::string>(),
                      .calls = operation.at("calls").get<std::int64_t>(),
                      .total_ns = operation.at("total_ns").get<double>(),
                      .share = operation.at("share").get<double>(),
                      .flops_per_s = number_at(operation, "flops_per_s"),
                      .bytes_per_s = number_at(operation, "bytes_per_s")};
  const auto found = counters.find(function_of(point.name));
  if (found != counters.end()) point.counters = found->second;
  place_under_roof(point, facts);
  place_by_bandwidth(point, facts);
  replace_by_counters(point);
  explain(point, facts);
  return point;
}

void add_rooflines(Json& report, const Facts& facts, const NcuByFunction& counters) {
  for (Json& operation : report.at("top_ops")) {
    const RooflinePoint point = place_operation(operation, facts, counters);
    operation["roofline_bound"] = point.bound.empty() ? Json() : Json(point.bound);
    operation["cause"] = point.cause.empty() ? Json() : Json(point.cause);
    operation["share_of_roof"] = point.share_of_roof ? Json(*point.share_of_roof) : Json();
  }
}

std::string ncu_command(const std::vector<std::string>& kernels, const std::string& program) {
  std::set<std::string> seen;
  std::string names;
  for (const std::string& kernel : kernels) {
    if (is_copy(kernel) || trace::is_collective_kernel(kernel) || kernel.starts_with("aten::"))
      continue;
    const std::string function = function_of(kernel);
    if (seen.insert(function).second) names += (names.empty() ? "" : "|") + function;
  }
  if (names.empty()) return "";
  return fmt::format(
      "ncu --csv --page raw --target-processes all --kernel-name-base function --kernel-name "
      "'regex:^({})$' --launch-skip 200 --launch-count 20 --metrics {} {} > ncu.csv",
      names, ncu_metrics(), program);
}

}  // namespace sidestream::advice
