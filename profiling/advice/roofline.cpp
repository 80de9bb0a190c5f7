#include "profiling/advice/roofline.hpp"

#include <algorithm>

#include "profiling/advice/causes.hpp"
#include "profiling/advice/operation_kind.hpp"
#include "profiling/analysis/element_work.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/report/number_at.hpp"
#include "profiling/report/or_null.hpp"

namespace sidestream::advice {
namespace {

using report::number_at;
using report::or_null;
using Json = nlohmann::ordered_json;

// Of a mean call, from the shapes. They may be known of some calls only: the rate is of these.
std::optional<double> flops_of_call(const Json& operation) {
  const auto rate = number_at(operation, "flops_per_s");
  const double calls = operation.at("calls").get<double>();
  const double seconds = operation.at("total_ns").get<double>() * 1e-9;
  return rate && calls > 0 ? std::optional(*rate * seconds / calls) : std::nullopt;
}

// Our attention is causal: the half of the products that lies behind a token is not computed,
// though by convention its FLOPs count (operator_work.hpp). A roof is held against what is
// computed. On a GPU the operation is a kernel of a library, and the operator's name is beside the
// shapes.
double computed_part(const Json& operation) {
  constexpr std::string_view kCausal = "sidestream::attention";
  if (operation.at("name").get<std::string>().starts_with(kCausal)) return 0.5;
  const auto shapes = operation.find("shapes");
  if (shapes == operation.end() || shapes->empty()) return 1;
  return shapes->front().at("operator").get<std::string>().starts_with(kCausal) ? 0.5 : 1;
}

// Counters are of the hardware: what they say holds, whatever the shapes say. Those of
// floating-point instructions leave Tensor Cores out, so they count where no Tensor Core worked.
// Returns the share of point.flops_per_s that is computed.
double replace_rates(RooflinePoint& point, const Json& operation) {
  double computed = computed_part(operation);
  if (!point.counters || !point.counters->duration_s || *point.counters->duration_s <= 0)
    return computed;
  const NcuCounters& counters = *point.counters;
  constexpr double kNoTensorCores = 1;  // % of the time
  std::optional<double> flops = flops_of_call(operation);
  // None at all: what it computes with is not among those that were counted.
  const bool is_counted = counters.flops.value_or(0) > 0;
  if (is_counted && counters.tensor_percent && *counters.tensor_percent < kNoTensorCores) {
    flops = counters.flops;
    computed = 1;
  }
  if (counters.dram_bytes) {
    point.bytes_per_s = *counters.dram_bytes / *counters.duration_s;
    point.bytes_at_least = false;
  }
  if (flops) point.flops_per_s = *flops / *counters.duration_s;
  return computed;
}

void place_under_roof(RooflinePoint& point, double computed_part, const Facts& facts) {
  if (!point.flops_per_s || !point.bytes_per_s || *point.bytes_per_s <= 0) return;
  const double flops_per_s = *point.flops_per_s * computed_part;
  point.intensity = flops_per_s / *point.bytes_per_s;
  if (!facts.ceilings || facts.ceilings->memory_bytes_per_s <= 0) return;
  const auto peak = facts.ceilings->flops_per_s.find(point.dtype);
  if (peak == facts.ceilings->flops_per_s.end()) return;
  const double slope = *point.intensity * facts.ceilings->memory_bytes_per_s;
  point.bound = slope < peak->second ? "memory" : "compute";
  point.share_of_roof = flops_per_s / std::min(slope, peak->second);
}

// Of operations that only move bytes. Far below the bandwidth something else holds them up.
void place_by_bandwidth(RooflinePoint& point, const Facts& facts) {
  constexpr double kHeldUpByMemory = 0.3;
  if (!point.bound.empty() || !point.bytes_per_s || point.flops_per_s) return;
  if (is_copy(point.name) || is_collective(point.name)) return;
  if (!facts.ceilings || facts.ceilings->memory_bytes_per_s <= 0) return;
  point.share_of_roof = *point.bytes_per_s / facts.ceilings->memory_bytes_per_s;
  if (*point.share_of_roof >= kHeldUpByMemory) point.bound = "memory";
}

// Copies between host and device, and collectives: their roof is a link.
void place_by_link(RooflinePoint& point, const Facts& facts) {
  if (!facts.ceilings) return;
  const auto against = [&](const std::optional<double>& rate, double link) {
    if (rate && link > 0) point.share_of_roof = *rate / link;
  };
  if (point.name.find("HtoD") != std::string::npos)
    against(point.bytes_per_s, facts.ceilings->host_to_device_bytes_per_s);
  if (point.name.find("DtoH") != std::string::npos)
    against(point.bytes_per_s, facts.ceilings->device_to_host_bytes_per_s);
  if (is_collective(point.name) && facts.collectives)
    against(facts.collectives->bus_of(point.name), facts.ceilings->link_bytes_per_s);
}

// The fused optimizer is no operator of a trace: its phase is held against what AdamW in fp32
// moves, 28 bytes a parameter (weight and two moments read and written, the gradient read), and
// computes.
void place_optimizer(RooflinePoint& point, const Facts& facts) {
  constexpr double kBytes = 28;
  const auto parameters = facts.environment_number("parameters");
  const bool adamw = facts.setting("algorithm").value_or("adamw") == "adamw" &&
                     facts.setting("optimizer-state-dtype").value_or("fp32") == "fp32";
  if (point.name != ranges::name_of(ranges::Phase::kOptimizer) || point.bytes_per_s || !adamw ||
      !parameters || point.total_ns <= 0)
    return;
  const double ranks =
      facts.setting("zero").value_or("1") == "0" ? 1 : std::max(1, facts.world_size);
  const double bytes = kBytes * *parameters / ranks;
  point.bytes_per_s = bytes * static_cast<double>(point.calls) / point.total_ns * 1e9;
  point.flops_per_s = *point.bytes_per_s / kBytes * analysis::kAdamwFlops;
  point.dtype = "fp32";
}

void place_by_counters(RooflinePoint& point) {
  if (!point.counters || !point.counters->compute_percent || !point.counters->memory_percent)
    return;
  const NcuCounters& counters = *point.counters;
  const bool memory = *counters.memory_percent > *counters.compute_percent;
  point.bound = memory ? "memory" : "compute";
  point.share_of_roof = std::max(*counters.memory_percent, *counters.compute_percent) / 100;
}

Json json_of(const NcuCounters& counters) {
  return {{"launches", counters.launches},
          {"duration_s", or_null(counters.duration_s)},
          {"flops", or_null(counters.flops)},
          {"dram_bytes", or_null(counters.dram_bytes)},
          {"compute_percent", or_null(counters.compute_percent)},
          {"memory_percent", or_null(counters.memory_percent)},
          {"tensor_percent", or_null(counters.tensor_percent)},
          {"occupancy_percent", or_null(counters.occupancy_percent)},
          {"occupancy_limiter",
           counters.occupancy_limiter.empty() ? Json() : Json(counters.occupancy_limiter)},
          {"l2_hit_percent", or_null(counters.l2_hit_percent)},
          {"sectors_per_request", or_null(counters.sectors_per_request)},
          {"bank_conflicts", or_null(counters.bank_conflicts)},
          {"top_stall", counters.top_stall.empty() ? Json() : Json(counters.top_stall)}};
}

std::string limiter_of(const std::string& kernel, const Facts& facts) {
  if (!facts.kernels) return "";
  const auto found = facts.kernels->limiters.find(kernel);
  return found == facts.kernels->limiters.end() ? "" : found->second;
}

}  // namespace

RooflinePoint place_operation(const Json& operation, const Facts& facts,
                              const NcuByKernel& counters) {
  const ComputedOn computed = computed_on(operation, facts.setting("precision").value_or(""));
  RooflinePoint point{.name = operation.at("name").get<std::string>(),
                      .calls = operation.at("calls").get<std::int64_t>(),
                      .total_ns = operation.at("total_ns").get<double>(),
                      .share = operation.at("share").get<double>(),
                      .step_share = number_at(operation, "step_share"),
                      .dtype = computed.dtype,
                      .flops_per_s = number_at(operation, "flops_per_s"),
                      .bytes_per_s = number_at(operation, "bytes_per_s"),
                      .bytes_at_least = operation.value("bytes_at_least", false),
                      .occupancy_percent = number_at(operation, "occupancy_percent"),
                      .occupancy_limiter = limiter_of(operation.at("name"), facts),
                      .counters = counters_for(counters, operation.at("name"))};
  const double computed_part = replace_rates(point, operation);
  place_optimizer(point, facts);
  place_under_roof(point, computed_part, facts);
  place_by_bandwidth(point, facts);
  place_by_link(point, facts);
  place_by_counters(point);
  explain(point, computed, facts);
  return point;
}

void add_rooflines(Json& report, const Facts& facts, const NcuByKernel& counters) {
  for (Json& operation : report.at("top_ops")) {
    const RooflinePoint point = place_operation(operation, facts, counters);
    operation["flops_per_s"] = or_null(point.flops_per_s);
    operation["bytes_per_s"] = or_null(point.bytes_per_s);
    operation["bytes_at_least"] = point.bytes_at_least;
    operation["roofline_bound"] = point.bound.empty() ? Json() : Json(point.bound);
    operation["cause"] = point.cause.empty() ? Json() : Json(point.cause);
    operation["share_of_roof"] = or_null(point.share_of_roof);
    operation["dtype"] = point.dtype.empty() ? Json() : Json(point.dtype);
    operation["occupancy_limiter"] =
        point.occupancy_limiter.empty() ? Json() : Json(point.occupancy_limiter);
    operation["intensity"] = or_null(point.intensity);
    operation["counters"] = point.counters ? json_of(*point.counters) : Json();
  }
}

}  // namespace sidestream::advice
